"""Small charts in SVG, made of nothing but text: the same figures give the same bytes.

A chart is a value (`model`), and all that is told of it comes from that one value: the drawing, the words for those who
cannot see it, the table of its data, and the page that gathers several."""
