"""Show results for every subject: the style of charts, headings of columns, the first lines of a report."""
