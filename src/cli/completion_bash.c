/* The completion script for bash: a function that joins what bash has cut, and one that sets COMPREPLY. */
#include "cli/completion.h"

#include <string.h>

static void complete_words(pli_text *text, const char *const *words, size_t n) {
    pli_text_add(text, " COMPREPLY=($(compgen -W \"");
    pli_offer_words(text, words, n);
    pli_text_add(text, "\" -- \"$word\"));");
}

/* Completes the value of an option: choices, policies, or files. */
static void complete_value(pli_text *text, const pli_opt *row) {
    pli_text        words = { 0 };
    const pli_offer offer = pli_offer_of(row, &words);
    if (offer != PLI_OFFER_NOTHING) pli_text_add(text, "        --%s)", row->name);
    if (offer == PLI_OFFER_WORDS || offer == PLI_OFFER_BOTH)
        pli_text_add(text, " COMPREPLY=($(compgen -W \"%.*s\" -- \"$word\")%s);", (int)words.length, words.data,
                     offer == PLI_OFFER_BOTH ? " $(compgen -f -- \"$word\")" : "");
    if (offer == PLI_OFFER_FILES) pli_text_add(text, " COMPREPLY=($(compgen -f -- \"$word\"));");
    if (offer != PLI_OFFER_NOTHING) pli_text_add(text, " return ;;\n");
    text->failed = text->failed || words.failed;
    pli_text_free(&words);
}

static void offer_option(pli_text *text, const char *name, const char *help) {
    (void)help;
    pli_text_add(text, " --%s", name);
}

static const pli_completion_places places = {
    .behind = { "\n        elif [ \"$place\" = '", "' ]; then\n           " },
    .words = complete_words,
};

/* Completes a word that is not an option: a topic after help, a command's own words directly after it, else a file. */
static void complete_topics(pli_text *text) {
    const char *names[PLI_CLI_TOPICS_MAX];
    size_t      n = pli_cli_topics(names);
    pli_text_add(text, "    *)\n        if [ \"${COMP_WORDS[at]}\" = help ]; then\n           ");
    complete_words(text, names, n);
    pli_completion_add_places(text, &places);
    pli_text_add(text, "\n        else\n            COMPREPLY=($(compgen -f -- \"$word\"))\n        fi ;;\n");
}

/* bash cuts words at = and at :, and replaces the last piece alone. So --topology=gossip:r is made --topology gossip:r,
 * and of what fits only the part behind the last colon is answered. */
static const char rejoin[] = "_plait() {\n"
                             "    local given=(\"${COMP_WORDS[@]}\") last=$COMP_CWORD piece joins= i\n"
                             "    local COMP_WORDS=() COMP_CWORD\n"
                             "    for ((i = 0; i <= last; i++)); do\n"
                             "        piece=${given[i]}\n"
                             "        if [ \"$piece\" = = ]; then\n"
                             "            COMP_WORDS+=('') joins=1\n"
                             "        elif [ -n \"$joins\" ] || { [ \"$piece\" = : ] && [ $i -gt 0 ]; }; then\n"
                             "            COMP_WORDS[${#COMP_WORDS[@]} - 1]+=$piece joins=\n"
                             "            [ \"$piece\" = : ] && joins=1\n"
                             "        else\n"
                             "            COMP_WORDS+=(\"$piece\")\n"
                             "        fi\n"
                             "    done\n"
                             "    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n"
                             "    _plait_words\n"
                             "    case ${COMP_WORDS[COMP_CWORD]} in\n"
                             "    *:*)\n        piece=${COMP_WORDS[COMP_CWORD]%:*}:\n"
                             "        COMPREPLY=(\"${COMPREPLY[@]#\"$piece\"}\") ;;\n"
                             "    esac\n"
                             "}\n";

void pli_completion_bash(pli_text *text) {
    const pli_command *const *commands = pli_commands();
    /* $at: index of the command; after `launch ... --`, that of the program to start, which "plait" may precede */
    pli_text_add(text,
                 "# bash completion of plait; written by: plait help --completion bash\n_plait_words() {\n"
                 "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} options= at=1 i\n"
                 "    for ((i = 2; i < COMP_CWORD && at == 1; i++)); do\n"
                 "        [ \"${COMP_WORDS[1]} ${COMP_WORDS[i]}\" = 'launch --' ] && at=$((i + 1))\n    done\n"
                 "    [ \"$at\" -gt 1 ] && [ \"$at\" -lt \"$COMP_CWORD\" ] && [ \"${COMP_WORDS[at]##*/}\" = plait ] && "
                 "at=$((at + 1))\n"
                 "    if [ \"$COMP_CWORD\" -eq \"$at\" ]; then\n        COMPREPLY=($(compgen -W \"");
    for (size_t i = 0; commands[i] != NULL; i++) pli_text_add(text, "%s%s", i > 0 ? " " : "", commands[i]->name);
    pli_text_add(text, "\" -- \"$word\"))\n        return\n    fi\n    case ${COMP_WORDS[at]} in\n");
    pli_completion_cases(text, &(pli_completion_case){ "options=\"", "\"", "${COMP_WORDS[at+1]}", complete_value,
                                                       offer_option });
    pli_text_add(text, "    esac\n    local place=\"${COMP_WORDS[*]:at:COMP_CWORD-at}\"\n"
                       "    case $word in\n    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$word\")) ;;\n");
    complete_topics(text);
    pli_text_add(text, "    esac\n}\n%scomplete -o filenames -F _plait plait\n", rejoin);
}
