"""Small SVG charts, generated as text: the same figures give the same bytes.

A chart is a value (`model`), from which everything is derived: the drawing, its description for screen readers, the
table of its data, and a page with several."""
