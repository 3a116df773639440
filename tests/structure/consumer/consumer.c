/* What a stranger's program sees of an installed Plait. */
#include <plait/log.h>
#include <plait/status.h>
#include <stdio.h>
#include <string.h>

int main(void) {
    printf("plait %s: %s\n", plait_version(), plait_status_text(PLAIT_OK));
    return strcmp(plait_status_text(PLAIT_OK), "success") != 0;
}
