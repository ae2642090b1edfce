from django.apps import AppConfig


class SchedulingConfig(AppConfig):
    name = "scheduling"
    verbose_name = "Capacity"

    def ready(self) -> None:
        from lcm import metrics
        from scheduling import wiring  # noqa: F401  (sessions get their reservations)
        from scheduling.metrics import capacity_figures

        metrics.FLEET.append(capacity_figures)
        _tell_controllers()
        _show_on_pages()


def _tell_controllers() -> None:
    """Where the sessions are that a controller works on, and which ports they have."""
    from lcm.selectors import for_controllers
    from scheduling.selectors.for_controllers import ports_of_sessions, slots_of_sessions

    for_controllers.PARTS |= {"slot": slots_of_sessions, "allocated_ports": ports_of_sessions}


def _show_on_pages() -> None:
    """What capacity adds to the side bar, the session's page and the change log's filter."""
    from lcm.web import filters, navigation, panels

    places = ("/pools/", "/slots/", "/reservations/")
    entry = navigation.Entry("capacity", "Capacity", "pool_list", places, "server-stack")
    navigation.register_entry("Plan", entry, after="definitions")
    panels.register_panel(page="session", name="capacity", title="Capacity", url_name="session_capacity")
    filters.OBJECT_TYPES += [("pool", "Pool"), ("slot", "Slot"), ("reservation", "Reservation")]
