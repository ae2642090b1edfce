"""Charts: the places of their marks are computed here, the mark-up is in `templates/charts/`.

Each chart is a value that one template draws: a title in words, axes with units, a legend, hover titles,
and the same numbers as a table.
"""
