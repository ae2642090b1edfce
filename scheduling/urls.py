"""The pages of capacity."""

from django.urls import path

from scheduling.pages import dry_run, moving, observers, overview, pools, queue, reservations, slots

urlpatterns = [
    path("overview/ticks", overview.overview_ticks, name="overview_ticks"),
    path("pools/", pools.pool_list, name="pool_list"),
    path("pools/new", pools.pool_create, name="pool_create"),
    path("pools/<uuid:pk>/", pools.pool_detail, name="pool_detail"),
    path("pools/<uuid:pk>/board", pools.pool_board, name="pool_board"),
    path("pools/<uuid:pk>/edit", pools.pool_edit, name="pool_edit"),
    path("pools/<uuid:pk>/scheduler", pools.pool_scheduler, name="pool_scheduler"),
    path("queue/", queue.queue_list, name="queue_list"),
    path("queue/ticks", queue.queue_ticks, name="queue_ticks"),
    path("queue/dry-run", dry_run.dry_run, name="dry_run"),
    path("ticks/", queue.tick_list, name="tick_list"),
    path("ticks/<uuid:pk>/", queue.tick_detail, name="tick_detail"),
    path("decisions/", queue.decision_list, name="decision_list"),
    path("slots/", slots.slot_list, name="slot_list"),
    path("slots/cordon", slots.slot_bulk_cordon, name="slot_bulk_cordon"),
    path("slots/uncordon", slots.slot_bulk_uncordon, name="slot_bulk_uncordon"),
    path("slots/drain", slots.slot_bulk_drain, name="slot_bulk_drain"),
    path("slots/<uuid:pk>/", slots.slot_detail, name="slot_detail"),
    path("slots/<uuid:pk>/cordon", slots.slot_cordon, name="slot_cordon"),
    path("slots/<uuid:pk>/uncordon", slots.slot_uncordon, name="slot_uncordon"),
    path("slots/<uuid:pk>/drain", slots.slot_drain, name="slot_drain"),
    path("slots/<uuid:pk>/labels", slots.slot_labels, name="slot_labels"),
    path("slots/<uuid:pk>/retry", slots.slot_retry, name="slot_retry"),
    path("slots/<uuid:pk>/terminate", slots.slot_terminate, name="slot_terminate"),
    path("reservations/", reservations.reservation_list, name="reservation_list"),
    path("reservations/<uuid:pk>/", reservations.reservation_detail, name="reservation_detail"),
    path("reservations/<uuid:pk>/cancel", reservations.reservation_cancel, name="reservation_cancel"),
    path("observers/", observers.observer_list, name="observer_list"),
    path("observers/board", observers.observer_board, name="observer_board"),
    path("observers/<slug:name>/", observers.observer_detail, name="observer_detail"),
    path("observers/<slug:name>/run", observers.observer_run, name="observer_run"),
    path("sessions/<uuid:pk>/why", queue.session_why, name="session_why"),
    path("sessions/<uuid:pk>/pool", moving.session_pool, name="session_pool"),
    path("sessions/<uuid:pk>/capacity", reservations.session_capacity, name="session_capacity"),
]
