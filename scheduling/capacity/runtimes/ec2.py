"""The `ec2` runtime: on-demand and spot instances of Amazon EC2."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from string import Formatter
from typing import Annotated, Any, ClassVar

from scheduling.capacity.runtimes import aws
from scheduling.capacity.runtimes.base import (
    ConfiguredRuntime,
    Health,
    Instance,
    InstanceState,
    Interruption,
    LaunchRequest,
    Market,
    Misconfigured,
    Offering,
    RuntimeFailure,
)
from scheduling.capacity.runtimes.health import probe_cml
from scheduling.capacity.runtimes.spot_notices import SpotNotices
from scheduling.options import Options, choice, rows, text, texts_by_name
from scheduling.services.installation import installation_id

URL = r"https?://\S+"
MAX_USER_DATA_BYTES = 16 * 1024
MAX_TAGS = 40
INSTALLATION = "lcm:installation"
STATES = {
    "pending": InstanceState.PENDING,
    "running": InstanceState.RUNNING,
    "shutting-down": InstanceState.STOPPING,
    "stopping": InstanceState.STOPPED,
    "stopped": InstanceState.STOPPED,
    "terminated": InstanceState.GONE,
}
ADDRESSES = {
    "private_ip": "PrivateIpAddress",
    "public_ip": "PublicIpAddress",
    "private_dns": "PrivateDnsName",
    "public_dns": "PublicDnsName",
    "instance_id": "InstanceId",
}


@dataclass(frozen=True)
class Ec2Offering(Options):
    """An instance type in a zone, in a subnet, or where the launch template places it."""

    instance_type: Annotated[
        str, text("an instance type like m6i.4xlarge", pattern=r"[a-z0-9-]+\.[a-z0-9-]+")
    ]
    zone: Annotated[str, text("a zone like eu-central-1a", pattern=r"[a-z]{2,}(-[a-z0-9]+)+", empty=True)] = (
        ""
    )
    subnet_id: Annotated[
        str, text("a subnet like subnet-0a1b2c3d", pattern=r"subnet-[0-9a-f]+", empty=True)
    ] = ""
    market: Annotated[Market, choice(Market)] = Market.ON_DEMAND

    def as_offering(self) -> Offering:
        """Return the offering with a unique name; its zone is the subnet if one is set."""
        zone = self.subnet_id or self.zone
        spot = "spot" if self.market == Market.SPOT else ""
        name = "/".join(part for part in (self.instance_type, zone, spot) if part)
        return Offering(name, self.market, self.instance_type, zone)


@dataclass(frozen=True)
class Ec2Options(Options):
    region: Annotated[str, text("a region like eu-central-1", pattern=r"[a-z]{2,}(-[a-z0-9]+)+")]
    launch_template: Annotated[
        str, text("the ID (lt-…) or name of a launch template", pattern=r"[\w.()/-]{3,128}")
    ]
    offerings: Annotated[tuple[Ec2Offering, ...], rows()]
    launch_template_version: Annotated[
        str, text("a number, $Default or $Latest", pattern=r"\d+|\$Default|\$Latest")
    ] = "$Default"
    interruption_queue_url: Annotated[str, text("the address of a queue", pattern=URL, empty=True)] = ""
    endpoint_template: Annotated[str, text(pattern=URL)] = "https://{private_ip}"
    endpoint_url: Annotated[str, text("the address of a service", pattern=URL, empty=True)] = ""
    ca: Annotated[str, text(empty=True)] = ""
    tags: Annotated[Mapping[str, str], texts_by_name()] = field(default_factory=dict)
    labels: Annotated[Mapping[str, str], texts_by_name()] = field(default_factory=dict)

    def problems(self) -> dict[str, str]:
        return self._offering_problems() | self._endpoint_problems() | self._tag_problems()

    def _offering_problems(self) -> dict[str, str]:
        for index, offering in enumerate(self.offerings):
            if offering.zone and offering.subnet_id:
                text = "A subnet already determines the zone: set either the zone or the subnet."
                return {f"offerings[{index}].subnet_id": text}
        names = [offering.as_offering().name for offering in self.offerings]
        duplicates = sorted({name for name in names if names.count(name) > 1})
        return {"offerings": f"{duplicates[0]} is listed twice."} if duplicates else {}

    def _endpoint_problems(self) -> dict[str, str]:
        known = f"Placeholders: {', '.join(f'{{{name}}}' for name in ADDRESSES)}."
        try:
            parts = list(Formatter().parse(self.endpoint_template))
        except ValueError as error:
            return {"endpoint_template": f"“endpoint_template” cannot be read: {error}. {known}"}
        for _, name, spec, conversion in parts:
            if name is not None and (name not in ADDRESSES or spec or conversion):
                return {
                    "endpoint_template": f"“endpoint_template” has the unknown placeholder “{name}”. {known}"
                }
        return {}

    def _tag_problems(self) -> dict[str, str]:
        if len(self.tags) > MAX_TAGS:
            return {"tags": f"There are {len(self.tags)} tags; at most {MAX_TAGS} are allowed."}
        for key, value in self.tags.items():
            if key == "Name" or key.startswith(("lcm:", "aws:")):
                return {
                    "tags": f"The tag “{key}” is reserved, like Name and tags that start with lcm: or aws:."
                }
            if not 0 < len(key) <= 128 or len(value) > 256:
                return {"tags": "A tag's name has 1 to 128 characters, its value at most 256."}
        return {}


class Ec2Runtime(ConfiguredRuntime[Ec2Options]):
    """Launches from a template, one instance per call, tagged in the same call.

    A repeated call for the same attempt and offering must have the same user data; EC2 then returns the
    instance of the first call.
    """

    listing_delay = timedelta(seconds=60)
    needs_public_url = True

    options_type: ClassVar[type[Ec2Options]] = Ec2Options
    page_size: ClassVar[int] = 500

    @classmethod
    def problems(cls, settings: Mapping[str, Any]) -> dict[str, str]:
        return super().problems(settings) if aws.is_installed() else {"": aws.BOTO3_MISSING}

    def offerings(self) -> Iterable[Offering]:
        return [each.as_offering() for each in self.options.offerings]

    def launch(self, request: LaunchRequest) -> Instance:
        call = self._launch_call(request)
        with aws.calling(f"launch {request.slot_name} as {request.offering.name}"):
            response = self._client("ec2").run_instances(**call)
        return self._instance(response["Instances"][0])

    @cached_property
    def installation(self) -> str:
        """Return the id of this installation, which separates pools of the same name in one account."""
        return installation_id()

    def describe(self) -> Iterable[Instance]:
        """Return all instances or raise: in a partial list the missing instances would count as vanished.

        EC2 cannot filter by a missing tag, so instances of other installations are filtered out here.
        """
        filters = [
            {"Name": "tag:lcm:pool", "Values": [self.pool]},
            {"Name": "instance-state-name", "Values": [name for name in STATES if name != "terminated"]},
        ]
        with aws.calling(f"list the instances of {self.pool}"):
            paginator = self._client("ec2").get_paginator("describe_instances")
            pages = paginator.paginate(Filters=filters, PaginationConfig={"PageSize": self.page_size})
            return [
                self._instance(raw)
                for page in pages
                for reservation in page["Reservations"]
                for raw in reservation["Instances"]
                if _tags_of(raw).get(INSTALLATION, self.installation) == self.installation
            ]

    def claim(self, instance_ids: Sequence[str]) -> None:
        tag = {"Key": INSTALLATION, "Value": self.installation}
        with aws.calling(f"tag {len(instance_ids)} instances of {self.pool}"):
            for start in range(0, len(instance_ids), self.page_size):
                batch = list(instance_ids[start : start + self.page_size])
                self._client("ec2").create_tags(Resources=batch, Tags=[tag])

    def terminate(self, instance_id: str) -> None:
        from botocore.exceptions import ClientError

        with aws.calling(f"terminate {instance_id}"):
            try:
                self._client("ec2").terminate_instances(InstanceIds=[instance_id])
            except ClientError as error:
                if aws.error_code(error) != "InvalidInstanceID.NotFound":
                    raise

    def probe(self, instance: Instance) -> Health:
        return probe_cml(instance.endpoint, self.options.ca)

    def interruptions(self) -> Iterable[Interruption]:
        url = self.options.interruption_queue_url
        return SpotNotices(self._client("sqs"), url).receive() if url else ()

    def _client(self, service: str) -> Any:
        return aws.client(service, self.options.region, self.options.endpoint_url)

    def _launch_call(self, request: LaunchRequest) -> dict[str, Any]:
        options, offering = self.options, request.offering
        template = "LaunchTemplateId" if options.launch_template.startswith("lt-") else "LaunchTemplateName"
        call: dict[str, Any] = {
            "MinCount": 1,
            "MaxCount": 1,
            "LaunchTemplate": {
                template: options.launch_template,
                "Version": options.launch_template_version,
            },
            "InstanceType": offering.instance_type,
            "ClientToken": hashlib.sha256(f"{request.token}\n{offering.name}".encode()).hexdigest(),
            "TagSpecifications": [{"ResourceType": "instance", "Tags": self._tags(request)}],
        }
        if offering.zone.startswith("subnet-"):
            call["SubnetId"] = offering.zone
        elif offering.zone:
            call["Placement"] = {"AvailabilityZone": offering.zone}
        if offering.market == Market.SPOT:
            options_of_spot = {"SpotInstanceType": "one-time", "InstanceInterruptionBehavior": "terminate"}
            call["InstanceMarketOptions"] = {"MarketType": "spot", "SpotOptions": options_of_spot}
        if request.user_data:
            call["UserData"] = _checked_user_data(request.user_data)
        return call

    def _tags(self, request: LaunchRequest) -> list[dict[str, str]]:
        tags = {
            **self.options.tags,
            "Name": request.slot_name,
            INSTALLATION: self.installation,
            "lcm:pool": self.pool,
            "lcm:slot": request.slot_id,
            "lcm:token": request.token,
        }
        return [{"Key": key, "Value": value} for key, value in tags.items()]

    def _instance(self, raw: Mapping[str, Any]) -> Instance:
        tags = _tags_of(raw)
        state = raw["State"]["Name"]
        if state not in STATES:
            raise RuntimeFailure(f"{raw['InstanceId']} is in an unknown state: {state}")
        return Instance(
            id=raw["InstanceId"],
            state=STATES[state],
            slot_id=tags.get("lcm:slot", ""),
            token=tags.get("lcm:token", ""),
            endpoint=self._endpoint(raw),
            market=Market.SPOT if raw.get("InstanceLifecycle") == "spot" else Market.ON_DEMAND,
            launched_at=raw.get("LaunchTime"),
            claimed=INSTALLATION in tags,
        )

    def _endpoint(self, raw: Mapping[str, Any]) -> str:
        """Return the worker's address; empty until the instance has the attributes in it."""
        values = {name: raw[key] for name, key in ADDRESSES.items() if raw.get(key)}
        try:
            return self.options.endpoint_template.format(**values)
        except KeyError:
            return ""


def _tags_of(raw: Mapping[str, Any]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in raw.get("Tags", ())}


def _checked_user_data(text: str) -> str:
    size = len(text.encode())
    if size > MAX_USER_DATA_BYTES:
        raise Misconfigured(f"The user data has {size} bytes; EC2 accepts at most {MAX_USER_DATA_BYTES}.")
    return text
