from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class SchedulingConfig(AppConfig):
    name = "scheduling"
    verbose_name = _("Capacity")
    extension = "scheduling.extension.EXTENSION"

    def ready(self) -> None:
        from scheduling import checks  # noqa: F401  (registers the system checks)
        from scheduling.coordination.coordinator import coordinator
        from scheduling.placement.framework.plugin import plugins

        # Load plugins and observers of other packages at start, so that a broken package is reported at once.
        plugins()
        coordinator.load_installed()
