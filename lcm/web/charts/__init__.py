"""Charts: geometry is computed here, the markup is in `templates/charts/`.

Each chart is a value that one template draws: title, axes with units, legend, hover titles and a data table.
"""
