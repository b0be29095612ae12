"""Renderers of charts: matplotlib for files, plotly for a page, plotext for a terminal; each imports its own."""
