from django.apps import AppConfig


class FairShareConfig(AppConfig):
    name = "fairshare"
    verbose_name = "Fair share"
    extension = "fairshare.extension.EXTENSION"
