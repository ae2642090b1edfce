"""Django's admin, for data fixes. `lcm.admin.site` is loaded before the models, so nothing is imported here."""
