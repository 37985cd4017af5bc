"""What a terminal shows: output, tables, colours, progress, pager."""
