"""JSON and console log lines with request and task ids."""

import json
import logging

import pytest

from lcm.config.logs import ConsoleFormatter, JsonFormatter, logging_config, request_id, task_id


def record(message="hello %s", *args, level=logging.INFO, **extra):
    return logging.getLogger("lcm.test").makeRecord(
        "lcm.test", level, __file__, 1, message, args or ("world",), None, extra=extra
    )


@pytest.fixture
def in_request():
    token = request_id.set("req-abcdef-123456")
    yield
    request_id.reset(token)


@pytest.fixture
def in_task():
    token = task_id.set("task-98765432")
    yield
    task_id.reset(token)


def parse_json_line(log_record):
    line = JsonFormatter().format(log_record)
    assert "\n" not in line
    return json.loads(line)


def test_a_json_line_has_time_level_logger_message_and_fields():
    entry = parse_json_line(record(status=200, path="/sessions/"))
    assert entry["at"].endswith("+00:00")
    assert {key: entry[key] for key in ("level", "logger", "message", "status", "path")} == {
        "level": "INFO",
        "logger": "lcm.test",
        "message": "hello world",
        "status": 200,
        "path": "/sessions/",
    }


def test_a_json_line_has_the_request_id(in_request):
    entry = parse_json_line(record())
    assert entry["request_id"] == "req-abcdef-123456"
    assert "task_id" not in entry


def test_a_json_line_has_the_task_id(in_task):
    entry = parse_json_line(record())
    assert entry["task_id"] == "task-98765432"
    assert "request_id" not in entry


def test_a_json_line_outside_of_a_request_or_task_has_no_id():
    assert not {"request_id", "task_id"} & set(parse_json_line(record()))


def test_a_json_line_contains_the_traceback_on_one_line():
    try:
        raise ValueError("first\nsecond")
    except ValueError as error:
        log_record = record()
        log_record.exc_info = (type(error), error, error.__traceback__)
    assert "ValueError: first\nsecond" in parse_json_line(log_record)["error"]


def test_a_field_that_is_not_json_serializable_becomes_text():
    assert parse_json_line(record(where=object))["where"] == "<class 'object'>"


def test_a_console_line_has_the_start_of_the_request_id(in_request):
    line = ConsoleFormatter().format(record(status=200))
    assert line.endswith("INFO lcm.test [req-abcd] hello world status=200")


def test_a_console_line_has_the_start_of_the_task_id(in_task):
    assert "[task-987]" in ConsoleFormatter().format(record())


def test_a_console_line_outside_of_a_request_or_task_has_no_brackets():
    assert "[" not in ConsoleFormatter().format(record())


def test_a_console_line_is_followed_by_the_traceback():
    try:
        raise ValueError("no")
    except ValueError as error:
        log_record = record()
        log_record.exc_info = (type(error), error, error.__traceback__)
    first, *_, last = ConsoleFormatter().format(log_record).splitlines()
    assert first.endswith("hello world")
    assert last == "ValueError: no"


@pytest.mark.parametrize(("style", "formatter"), [("json", JsonFormatter), ("console", ConsoleFormatter)])
def test_the_style_is_chosen_by_name(style, formatter):
    config = logging_config(style=style, level="WARNING")
    assert config["formatters"]["lcm"]["()"] is formatter
    assert config["root"]["level"] == "WARNING"


def test_the_request_log_has_the_request_id_of_the_response(client, caplog):
    formatted = []
    handler = logging.Handler()
    handler.emit = lambda log_record: formatted.append(json.loads(JsonFormatter().format(log_record)))
    logger = logging.getLogger("lcm.requests")
    logger.addHandler(handler)
    try:
        with caplog.at_level(logging.INFO, logger="lcm.requests"):
            response = client.get("/api/nowhere")
    finally:
        logger.removeHandler(handler)
    (line,) = formatted
    assert line["request_id"] == response["X-Request-ID"]
    assert (line["method"], line["path"], line["status"]) == ("GET", "/api/nowhere", 404)
