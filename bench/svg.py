"""Just enough SVG for the pictures of the manual: text, lines, bars, in a style that reads on a narrow and on a dark page."""

WIDTH = 640
INK, FAINT, PAPER = "#222", "#ccc", "#fff"
BLUE, SKY, GREY, ORANGE, GREEN, RED, PURPLE = "#1f5fa8", "#7fb0e0", "#dcdcdc", "#d9730d", "#2e8540", "#c0392b", "#7d4fa0"


def number(x):
    """Short: 12.5, 12, 0.3."""
    return f"{x:.1f}".rstrip("0").rstrip(".")


class Picture:
    def __init__(self, title):
        self.title, self.parts = title, []

    def text(self, x, y, words, anchor="start", color=INK, size=15, weight=None):
        bold = f' font-weight="{weight}"' if weight else ""
        words = str(words).replace("&", "&amp;").replace("<", "&lt;")
        self.parts.append(f'<text x="{number(x)}" y="{number(y)}" font-size="{size}" text-anchor="{anchor}" fill="{color}"{bold}>'
                          f'{words}</text>')

    def line(self, x1, y1, x2, y2, color=FAINT, width=1, dashed=False):
        dash = ' stroke-dasharray="4 4"' if dashed else ""
        self.parts.append(f'<path d="M{number(x1)} {number(y1)}L{number(x2)} {number(y2)}" stroke="{color}" '
                          f'stroke-width="{width}"{dash}/>')

    def curve(self, points, color, width=2):
        path = "L".join(f"{number(x)} {number(y)}" for x, y in points)
        self.parts.append(f'<path d="M{path}" fill="none" stroke="{color}" stroke-width="{width}" stroke-linejoin="round"/>')

    def bars(self, boxes, color):
        """boxes: (x, y, width, height), all in one path."""
        path = "".join(f"M{number(x)} {number(y)}h{number(w)}v{number(h)}h{number(-w)}z" for x, y, w, h in boxes)
        if path:
            self.parts.append(f'<path d="{path}" fill="{color}"/>')

    def dot(self, x, y, color, hollow=False, radius=5):
        fill = PAPER if hollow else color
        self.parts.append(f'<circle cx="{number(x)}" cy="{number(y)}" r="{radius}" fill="{fill}" stroke="{color}" stroke-width="2"/>')

    def save(self, path, height):
        title = self.title.replace("&", "&amp;").replace("<", "&lt;")
        body = "\n".join(self.parts)
        path.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {number(height)}" role="img" '
                        f'font-family="Helvetica, Arial, DejaVu Sans, sans-serif">\n<title>{title}</title>\n'
                        f'<rect width="{WIDTH}" height="{number(height)}" fill="{PAPER}"/>\n{body}\n</svg>\n')
