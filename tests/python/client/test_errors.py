"""Error classes: names, bases, attributes, pickling and copying."""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import TYPE_CHECKING, Any

import pytest

import chainframe as cf
from chainframe import errors
from chainframe.errors.base import in_shell

if TYPE_CHECKING:
    from collections.abc import Callable

SERVICE = ("endpoint", "status", "code", "msg", "attempts", "cursor")
TRANSPORT = ("endpoint", "attempts", "cursor", "phase")
FILE: type = cf.ExportError.__bases__[0]

# class: (its bases, its attributes, whether a later try may succeed)
TREE: dict[str, tuple[tuple[type, ...], tuple[str, ...], bool]] = {
    "ChainframeError": ((Exception,), (), False),
    "ConfigError": ((cf.ChainframeError, ValueError), (), False),
    "InvalidParameterError": ((cf.ChainframeError, ValueError), ("parameter",), False),
    "ServiceError": ((cf.ChainframeError,), SERVICE, False),
    "BadRequestError": ((cf.ServiceError,), SERVICE, False),
    "NotFoundError": ((cf.ServiceError,), SERVICE, False),
    "PermissionDeniedError": ((cf.ServiceError,), SERVICE, False),
    "AuthenticationError": ((cf.ServiceError,), SERVICE, False),
    "ClockSkewError": ((cf.AuthenticationError,), SERVICE, False),
    "RateLimitError": ((cf.ServiceError,), (*SERVICE, "retry_after"), True),
    "ServiceUnavailableError": ((cf.ServiceError,), SERVICE, True),
    "TransportError": ((cf.ChainframeError, ConnectionError), TRANSPORT, True),
    "RequestTimeoutError": ((cf.TransportError, TimeoutError), TRANSPORT, True),
    "ResponseFormatError": ((cf.ChainframeError,), ("endpoint", "path", "excerpt"), False),
    "ContextError": ((cf.ChainframeError, RuntimeError), (), False),
    "PaginationError": ((cf.ChainframeError,), (), False),
    "PaginationDriftError": ((cf.PaginationError,), (), False),
    "ResultWindowError": ((cf.PaginationError,), (), False),
    "ReorganizationError": ((cf.PaginationError,), ("height",), False),
    "FollowGapError": ((cf.PaginationError,), ("first_height", "last_height"), False),
    "IncompleteResultError": ((cf.PaginationError,), ("report", "partial"), False),
    "BudgetExceededError": ((cf.ChainframeError,), ("max_requests",), False),
    "NumericOverflowError": ((cf.ChainframeError, OverflowError), ("column", "row", "text"), False),
    "ExportError": ((FILE,), ("path",), False),
    "SettledHeightError": ((cf.ExportError,), ("height", "path"), False),
    "CassetteError": ((FILE,), ("path",), False),
    "CassetteMissError": ((cf.CassetteError,), ("path",), False),
}
EVERY = sorted(TREE)
SAMPLES: dict[str, Any] = {
    "max_requests": 20,
    "parameter": "page_size",
    "endpoint": "token_transfers",
    "status": 429,
    "code": "50011",
    "msg": "Too Many Requests",
    "attempts": 6,
    "cursor": '{"v":1}',
    "retry_after": 1.5,
    "phase": "read",
    "path": "data[0].transactionList[3].height",
    "excerpt": '"abc"',
    "report": {"complete": False},
    "partial": ["a", "b"],
    "column": "amount",
    "row": 7,
    "height": 4_300_000,
    "first_height": 9,
    "last_height": 10,
    "text": "0.1234567890123456789",
}


def error_class(name: str) -> type[cf.ChainframeError]:
    found: type[cf.ChainframeError] = getattr(cf, name)
    return found


def sample(name: str) -> cf.ChainframeError:
    attributes = {attribute: SAMPLES[attribute] for attribute in TREE[name][1]}
    error = error_class(name)("what went wrong", **attributes)
    error.add_note("while reading page 3")
    return error


def reduced(error: cf.ChainframeError) -> cf.ChainframeError:
    again: cf.ChainframeError = pickle.loads(pickle.dumps(error))
    return again


def test_every_error_class_is_exported() -> None:
    classes = {name for name, value in vars(errors).items() if inspect.isclass(value) and issubclass(value, Exception)}
    assert classes == {*TREE, "IncompleteResultWarning"}
    assert set(errors.__all__) == classes
    assert classes <= set(cf.__all__)


@pytest.mark.parametrize("name", EVERY)
def test_error_classes_have_the_documented_bases(name: str) -> None:
    assert error_class(name).__bases__ == TREE[name][0]


@pytest.mark.parametrize("name", EVERY)
def test_attributes_are_keyword_only_and_default_to_none(name: str) -> None:
    bare = error_class(name)("what went wrong")
    assert {key: value for key, value in vars(bare).items() if value} == {}
    assert set(vars(bare)) == set(TREE[name][1])
    for attribute in TREE[name][1]:
        assert getattr(sample(name), attribute) == SAMPLES[attribute]
        with pytest.raises(TypeError):
            error_class(name)("what went wrong", SAMPLES[attribute])  # type: ignore[call-arg]


@pytest.mark.parametrize("name", EVERY)
def test_retryable_is_set_by_class_and_by_instance(name: str) -> None:
    cls, default = error_class(name), TREE[name][2]
    assert cls("m").retryable is default
    assert cls("m", retryable=not default).retryable is not default
    assert cls("m", retryable=default).retryable is default


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("trip", [reduced, copy.copy, copy.deepcopy])
def test_pickling_and_copying_keep_all_attributes(
    name: str,
    trip: Callable[[cf.ChainframeError], cf.ChainframeError],
) -> None:
    error = sample(name)
    error.retryable = not error.retryable
    again = trip(error)
    assert type(again) is type(error)
    assert again is not error
    assert str(again) == str(error)
    assert vars(again) == vars(error)
    assert again.retryable is error.retryable
    assert again.__notes__ == ["while reading page 3"]


def test_deep_copy_shares_no_attribute() -> None:
    kept: Any = ["a"]
    error = cf.IncompleteResultError("m", partial=kept)
    again = copy.deepcopy(error)
    assert again.partial == kept
    assert again.partial is not kept


@pytest.mark.parametrize("name", EVERY)
def test_message_is_one_line(name: str) -> None:
    error = error_class(name)("first\nsecond\r\nthird\u2028fourth")
    assert str(error) == "first second third fourth"
    assert error.args == ("first second third fourth",)
    assert repr(error) == f"{name}('first second third fourth')"


def test_os_errors_carry_no_errno_of_their_own() -> None:
    error = cf.RequestTimeoutError("took too long", phase="deadline")
    assert (error.errno, error.strerror, error.filename) == (None, None, None)
    assert isinstance(error, TimeoutError)
    assert isinstance(error, ConnectionError)


def test_incomplete_result_warning_is_a_user_warning() -> None:
    assert cf.IncompleteResultWarning.__bases__ == (UserWarning,)


@pytest.mark.parametrize("name", [*EVERY, "IncompleteResultWarning"])
def test_every_class_documents_its_cause_with_an_example(name: str) -> None:
    text = inspect.getdoc(getattr(cf, name)) or ""
    summary, _, rest = text.partition("\n\n")
    assert "\n" not in summary
    assert ">>> " in rest


@pytest.mark.parametrize(
    "url",
    [
        "https://b/x?sig={0}",
        "azure:/c?sas={0}",
        "s3://bucket#{0}",
        "md+x://h/a?b={0}&c=d",
        "xy://u@h/p?{0}@{0}#{0}",
        "xy://u:{0}?{0}@h",
    ],
)
def test_message_omits_the_query_of_a_url(url: str) -> None:
    url = url.format("canary-91")
    for text in (f"{url} exists", f"({url}) is a database", f"got '{url}'; omit it"):
        error = cf.ConfigError(text)
        assert "canary" not in str(error)
        assert str(error).endswith(text[-5:])


def test_message_escapes_what_does_not_print() -> None:
    """Others may have chosen the name of a file."""
    name = "a\x1b[2J\x9b31m\u202e\u200b\r\x07.parquet é漢🙂"
    for error in (cf.ExportError(f"{name} is damaged", path=name), cf.InvalidParameterError(name, parameter="path")):
        assert str(error).isprintable()
        assert in_shell(error).isprintable()
        assert "é漢🙂" in str(error)
    assert getattr(cf.ExportError("", path=name), "path", None) == name


def test_message_for_the_shell_keeps_no_secret_of_a_url() -> None:
    """Pickles and `vars` show it."""
    with pytest.raises(cf.ConfigError) as caught:
        cf.Client(cassette="postgresql://app:canary-91@h/x?password=canary-91")  # type: ignore[arg-type]
    assert caught.value._shell_text
    assert b"canary" not in pickle.dumps(caught.value)
    assert "canary" not in repr(vars(caught.value))


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://app:{0}@localhost/chain.db",
        "s3://KEY:{0}@bucket/x",
        "s3:/KEY:{0}@bucket/x",
        "https://{0}@proxy.example.com",
        "http://someone:a/{0}:b@c@d.example.com",
    ],
)
def test_message_omits_the_user_part_of_a_url(url: str) -> None:
    url = url.format("canary-91")
    for error in (
        cf.ExportError(f"{url} exists", path=url),
        cf.InvalidParameterError(f"({url}) is a database", parameter="target"),
        cf.ConfigError(f"proxy '{url}' is wrong"),
    ):
        assert "canary" not in str(error) + in_shell(error)
        assert "***@" in str(error)
    text = "write to someone@example.com about https://example.com/a, see C:/a@b and C:/c?d or https://b#"
    assert str(cf.ConfigError(text)) == text
