"""Calls about the controller: log-in, users, statistics, resource pools."""

from __future__ import annotations

from lcm.cml.simulator.calls import controller_info
from lcm.cml.simulator.calls.routing import Context, route
from lcm.cml.simulator.http_messages import ApiError, Reply


@route("POST", "/authenticate", is_open=True)
def authenticate(call: Context) -> Reply:
    return Reply.of(call.controller.users.log_in(call.request.json(), call.now))


@route("GET", "/authok")
def authok(call: Context) -> Reply:
    return Reply.of("OK")


@route("GET", "/authentication")
def authentication(call: Context) -> Reply:
    if not call.options.is_modern:
        raise ApiError(404, f"Not Found: {call.request.path}")
    user = call.caller
    return Reply.of(
        {"id": user.id, "username": user.name, "admin": user.is_admin, "token": call.request.bearer}
    )


@route("DELETE", "/logout")
def logout(call: Context) -> Reply:
    call.controller.users.forget(call.request.bearer)
    return Reply.of(True)


@route("GET", "/users")
def users(call: Context) -> Reply:
    return Reply.of([user.shape() for user in call.controller.users.all()])


@route("GET", "/system_information", is_open=True)
def system_information(call: Context) -> Reply:
    return Reply.of(controller_info.information(call.controller))


@route("GET", "/system_stats")
def system_stats(call: Context) -> Reply:
    return Reply.of(controller_info.stats(call.controller))


@route("GET", "/system_health")
def system_health(call: Context) -> Reply:
    return Reply.of(controller_info.health(call.controller))


@route("GET", "/resource_pools")
def resource_pools(call: Context) -> Reply:
    pool = controller_info.resource_pool(call.controller)
    return Reply.of([pool if call.request.flag("data") else pool["id"]])


@route("GET", "/resource_pool_usage")
def resource_pool_usage(call: Context) -> Reply:
    return Reply.of([controller_info.resource_pool_usage(call.controller)])


@route("GET", "/resource_pool_usage/{pool}")
def usage_of_one_pool(call: Context) -> Reply:
    usage = controller_info.resource_pool_usage(call.controller)
    if call.ids["pool"] != usage["id"]:
        raise ApiError(404, f"Resource pool not found: {call.ids['pool']}")
    return Reply.of(usage)
