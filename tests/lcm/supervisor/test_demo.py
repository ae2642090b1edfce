"""Environment of the demo's processes."""

from lcm.supervisor.address import Address
from lcm.supervisor.demo_processes import DemoFleet


def test_short_labs_count_as_samples_by_default(tmp_path):
    fleet = DemoFleet.planned(Address("127.0.0.1", 8000), tmp_path)
    environment = fleet.environment({"SIMULATOR_URL": "http://127.0.0.1:9", "HOME": "/"})
    assert environment == {
        "SAMPLE_MIN_UPTIME_SECONDS": "120",
        "SIMULATOR_URL": fleet.simulator_url,
        "HOME": "/",
    }
    assert fleet.environment({"SAMPLE_MIN_UPTIME_SECONDS": "600"})["SAMPLE_MIN_UPTIME_SECONDS"] == "600"
