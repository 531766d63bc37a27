"""From runs to answers: projections, comparisons, plots, files."""
