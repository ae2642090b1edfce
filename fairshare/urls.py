"""URLs of the fair-share pages."""

from django.urls import path

from fairshare.pages import overview, policies, shares, usage, weights

urlpatterns = [
    path("overview/usage", overview.overview_usage, name="overview_usage"),
    path("fair-share/", shares.fair_share, name="fair_share"),
    path("fair-share/weights/bar", weights.weights_bar, name="fair_share_weights_bar"),
    path("fair-share/weights", weights.weights_save, name="fair_share_weights"),
    path("fair-share/policy", policies.policy_edit, name="fair_share_policy"),
    path("fair-share/check", shares.usage_check, name="usage_check"),
    path("fair-share/rebuild", shares.usage_rebuild, name="usage_rebuild"),
    path("usage/", usage.usage_explorer, name="usage_explorer"),
]
