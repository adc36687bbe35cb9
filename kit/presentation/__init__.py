"""What every subject shows with: the style of charts, headings of columns, the first lines of a report."""
