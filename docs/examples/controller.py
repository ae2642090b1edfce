"""A lablet controller: LCM_URL=http://127.0.0.1:8000 LCM_TOKEN=lcm_… python docs/examples/controller.py"""

import os
import time
from datetime import datetime, timedelta

import httpx

NAME = "example"
KEY = {"Authorization": f"Bearer {os.environ['LCM_TOKEN']}"}
LCM = httpx.Client(base_url=f"{os.environ['LCM_URL']}/api/internal/", headers=KEY, timeout=40)


def call(method, path, **options):
    reply = LCM.request(method, path, **options)  # without a proxy, the watch redirects to its own process
    return (LCM.get(reply.headers["Location"]) if reply.is_redirect else reply).raise_for_status().json()


def move(session, to):
    """Request a transition. LCM responds 409 if the session has changed or was extended: read it again."""
    body = {"from_status": session["status"], "attempt": session["attempt"], "ends_at": session["ends_at"]}
    body["to_status"] = to
    key = {"Idempotency-Key": f"{session['id']} {session['attempt']} {to}"}
    response = LCM.post(f"lablet-sessions/{session['id']}/transitions", json=body, headers=key)
    return None if response.status_code == 409 else response.raise_for_status().json()


def observe(session, now):
    """Post what the lab holds and uses. A real controller measures these figures."""
    seen = {"observed_at": now.isoformat(), "observer": "lablet-controller", "controller": NAME}
    used = {"total_cpu_cores": "2", "total_memory_mb": 4096, "used_cpu_cores": "1.2", "used_memory_mb": 3100}
    body = {**seen, **used, "observed_ports": session["allocated_ports"]}
    call("POST", f"lablet-sessions/{session['id']}/resource-observations", json=body)


def step(session, now):
    """Do what is due in this status. Return the changed session, or None if it has to wait."""
    status, is_over = session["status"], now >= datetime.fromisoformat(session["ends_at"])
    is_near = now >= datetime.fromisoformat(session["starts_at"]) - timedelta(minutes=10)
    if status == "SCHEDULED" and (is_over or is_near):
        return move(session, "CANCELLED" if is_over else "INSTANTIATING")
    if status == "INSTANTIATING":  # import session["topology"], set its ports, start it; return when up
        return move(session, "READY")
    if status == "READY" and (session["arrived_at"] or not session["awaits_arrival"]):
        return move(session, "RUNNING")
    if status == "COLLECTING" or (status == "RUNNING" and session["requests"].get("observe")):
        observe(session, now)
    if status == "RUNNING" and is_over:
        return move(session, "COLLECTING")
    if status == "COLLECTING":
        return move(session, "STOPPING")
    if status == "STOPPING":  # remove the lab
        return move(session, "TERMINATED")
    return None


def main():
    revision = call("GET", "watch")["revision"]
    while True:
        mine = {each["pool"] for each in call("POST", "leases/hold", json={"holder": NAME}) if each["held"]}
        response = LCM.get("lablet-sessions", params={"page_size": 500}).raise_for_status()
        now = datetime.fromisoformat(response.headers["X-LCM-Time"])  # the clock of this machine may be wrong
        for session in response.json()["results"]:
            while session and session["pool"] in mine:
                session = step(session, now)
        revision = call("GET", "watch", params={"since": revision, "wait": 5})["revision"]  # or sooner


if __name__ == "__main__":
    while True:
        try:
            main()
        except httpx.HTTPError as error:  # LCM is down, or 410: labs keep running, try again
            print(error)
            time.sleep(2)
