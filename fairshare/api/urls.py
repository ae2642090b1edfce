"""URLs of the fair-share API."""

from django.urls import include, path

from fairshare.api.views import FairShareViewSet, PolicyViewSet, UsageBucketViewSet
from lcm.api.urls import Router

app_name = "fairshare"

router = Router()
router.register("usage-buckets", UsageBucketViewSet, "usage-bucket")
router.register("fair-shares", FairShareViewSet, "fair-share")
router.register("fair-share-policies", PolicyViewSet, "fair-share-policy")

urlpatterns = [path("", include(router.urls))]
