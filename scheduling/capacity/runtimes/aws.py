"""AWS clients, and the mapping of their errors to runtime failures. boto3 is imported on first use."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from threading import Lock
from typing import Any

from scheduling.capacity.runtimes.base import (
    CapacityRefused,
    Misconfigured,
    QuotaExceeded,
    ResponseLost,
    RuntimeFailure,
    Throttled,
)

BOTO3_MISSING = (
    "The runtime “ec2” needs boto3, which is not installed: in LCM's folder, "
    ".venv/bin/python -m pip install -c constraints.txt -e '.[aws]'."
)

# The first pattern that matches the whole code applies; an unknown code is a plain failure. An offering that
# a zone does not have (“Unsupported”) or a full subnet is a capacity refusal: the next offering may work.
CODES: tuple[tuple[str, type[RuntimeFailure]], ...] = (
    (
        r"RequestLimitExceeded|Throttling|ThrottlingException|ThrottledException|RequestThrottled(Exception)?"
        r"|EC2ThrottledException|TooManyRequestsException|PriorRequestNotComplete|BandwidthLimitExceeded"
        r"|SlowDown|AWS\.SimpleQueueService\.RequestThrottled",
        Throttled,
    ),
    (
        r"Insufficient\w*Capacity|InsufficientCapacityOnHost|InsufficientFreeAddressesInSubnet"
        r"|UnfulfillableCapacity|SpotMaxPriceTooLow|Unsupported",
        CapacityRefused,
    ),
    (r"MaxSpot\w*CountExceeded|SpotInstanceCountExceeded|\w+LimitExceeded", QuotaExceeded),
    (
        r"UnauthorizedOperation|AuthFailure|AccessDenied(Exception)?|OptInRequired|Blocked|OperationNotPermitted"
        r"|InvalidClientTokenId|UnrecognizedClientException|SignatureDoesNotMatch|IncompleteSignature"
        r"|MissingAuthenticationToken|ExpiredToken(Exception)?|RequestExpired|InvalidSecurity(Token)?"
        r"|MissingParameter|UnknownParameter|UnsupportedOperation|ValidationError|VPCIdNotSpecified"
        r"|QueueDoesNotExist|AWS\.SimpleQueueService\.NonExistentQueue|InvalidAddress"
        r"|Invalid(Parameter|LaunchTemplate|AMI|Subnet|KeyPair|Group|SecurityGroup|IamInstanceProfile"
        r"|AvailabilityZone|Zone|InstanceType|UserData|BlockDevice|Snapshot|PlacementGroup|NetworkInterface"
        r"|Tenancy|Vpc|Tag)[\w.]*",
        Misconfigured,
    ),
    (
        r"Internal(Error|Failure)|(Service|Server)?Unavailable|RequestTimeout|IdempotentParameterMismatch",
        ResponseLost,
    ),
)


def is_installed() -> bool:
    try:
        import boto3  # noqa: F401
    except ImportError:
        return False
    return True


def client(service: str, region: str, endpoint_url: str = "") -> Any:
    """Return the client of this process, shared by its threads."""
    with _client_lock:
        return _client(service, region, endpoint_url)


@contextmanager
def calling(operation: str) -> Iterator[None]:
    """Turn exceptions of botocore into runtime failures."""
    from botocore.exceptions import BotoCoreError, ClientError
    from botocore.parsers import ResponseParserError

    try:
        yield
    except ClientError as error:
        code, message = error_code(error), error.response["Error"].get("Message", "")
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        raise failure_for(code, status)(f"{operation}: {code}: {message}") from error
    except (BotoCoreError, ResponseParserError) as error:
        raise _failure_of(error)(f"{operation}: {error}") from error


def error_code(error: Any) -> str:
    """Return the error code of the service's response."""
    return str(error.response["Error"].get("Code", ""))


def failure_for(code: str, status: int = 400) -> type[RuntimeFailure]:
    """Return the runtime failure for an error code; after a server error the request may have run."""
    for pattern, failure in CODES:
        if re.fullmatch(pattern, code):
            return failure
    return ResponseLost if status >= 500 else RuntimeFailure


_client_lock = Lock()


@lru_cache(maxsize=32)
def _client(service: str, region: str, endpoint_url: str) -> Any:
    import boto3
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError

    # No retries here: the next tick repeats every call, and retries would multiply refusals.
    config = Config(
        connect_timeout=5,
        read_timeout=20,
        max_pool_connections=32,
        retries={"mode": "standard", "total_max_attempts": 1},
    )
    try:
        return boto3.session.Session().client(
            service, region_name=region, endpoint_url=endpoint_url or None, config=config
        )
    except (BotoCoreError, ValueError) as error:
        raise Misconfigured(f"No connection to {service} in {region}: {error}") from error


def _failure_of(error: Exception) -> type[RuntimeFailure]:
    """Return the runtime failure for an error without a response."""
    from botocore import exceptions as botocore_errors
    from botocore.parsers import ResponseParserError

    never_works = (
        botocore_errors.NoCredentialsError,
        botocore_errors.PartialCredentialsError,
        botocore_errors.ParamValidationError,
        botocore_errors.ProfileNotFound,
        botocore_errors.InvalidRegionError,
    )
    if isinstance(error, never_works):
        return Misconfigured
    # Requests that never reached the service, such as a refused connection, have another class.
    if isinstance(error, botocore_errors.HTTPClientError | ResponseParserError):
        return ResponseLost
    return RuntimeFailure
