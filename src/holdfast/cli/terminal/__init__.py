"""Output on a terminal: tables, colours, graphs, progress, pager."""
