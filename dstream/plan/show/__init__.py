"""A plan for people: `chain` writes the calls that build it, the rest draws the stages it runs as.

The rest is imported when something is drawn: a stream that nobody looks at needs none of it.

`shortening` bounds what is drawn, `wording` says it, `text`, `dot`, `mermaid`, `svg` and `html` write it,
and `drawing` chooses among them.
"""
