"""What a terminal shows: output, tables, colours, graphs, progress, pager."""
