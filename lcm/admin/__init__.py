"""Django admin for data fixes. The package is loaded before the models, so it imports nothing."""
