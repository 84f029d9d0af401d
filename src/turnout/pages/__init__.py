"""Self-contained HTML pages of figures with the rows behind them, and the SVG plots on them."""
