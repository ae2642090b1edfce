"""Model validation that raises LCM's errors instead of Django's."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db import IntegrityError, models, transaction
from django.db.models import ProtectedError
from django.utils.text import get_text_list
from django.utils.translation import gettext as _

from lcm.domain.errors import InUse, InvalidInput, NotFound
from lcm.domain.storable_text import UNSTORABLE, find_unstorable


def clean_model(obj: models.Model, *, exclude: set[str] | None = None) -> None:
    """Validate fields, uniqueness and constraints; raise InvalidInput with a message per field."""
    _reject_unstorable(obj)
    try:
        _full_clean(obj, exclude or set())
    except ValidationError as error:
        fields = {_public_field(key): texts for key, texts in error.message_dict.items()}
        raise InvalidInput(fields) from error


def require_reason(reason: str) -> None:
    """Raise InvalidInput if the reason is empty."""
    if not reason.strip():
        raise InvalidInput({"reason": _("Enter a reason. It is recorded in the change log.")})


def refuse_unknown(names: Iterable[str], known: Collection[str], text: str) -> None:
    """Raise InvalidInput with this text for every name that is not known."""
    if unknown := sorted(set(names).difference(known)):
        raise InvalidInput(dict.fromkeys(unknown, text))


def clean_and_save(
    obj: models.Model, *, exclude: set[str] | None = None, fields: list[str] | None = None
) -> None:
    """Validate and save; the database checks uniqueness and constraints, which avoids queries."""
    _reject_unstorable(obj)
    try:
        obj.full_clean(exclude=exclude, validate_unique=False, validate_constraints=False)
    except ValidationError:
        clean_model(obj, exclude=exclude)
    try:
        with transaction.atomic():
            obj.save(update_fields=fields)
    except IntegrityError as error:
        clean_model(obj, exclude=exclude)
        raise InvalidInput({"__all__": str(error)}) from error


def delete_if_unused(obj: models.Model) -> None:
    """Delete an object; raise InUse if other objects refer to it."""
    if not type(obj)._default_manager.select_for_update().filter(pk=obj.pk).exists():
        raise NotFound(_("%(name)s was deleted a moment ago.") % {"name": obj})
    uses = _reference_counts(obj)
    if uses:
        raise InUse(
            _("%(name)s cannot be deleted because it is used by %(names)s.")
            % {"name": obj, "names": get_text_list(uses, _("and"))}
        )
    try:
        with transaction.atomic():
            obj.delete()
    except ProtectedError as error:
        raise InUse(
            _("%(name)s cannot be deleted because another request has just added a reference to it.")
            % {"name": obj}
        ) from error


def _full_clean(obj: models.Model, exclude: set[str]) -> None:
    """Run Django's `full_clean` with one query for all check constraints instead of three for each."""
    if not exclude:
        try:
            obj.full_clean(validate_constraints=False)
            for model, constraints in obj.get_constraints():
                for constraint in _merge_checks(constraints):
                    constraint.validate(model, obj)
            return
        except ValidationError:
            pass
    # Only Django's own validation names the field of each error.
    obj.full_clean(exclude=exclude)


def _merge_checks(constraints: Iterable[models.BaseConstraint]) -> Iterator[models.BaseConstraint]:
    conditions = []
    for constraint in constraints:
        if isinstance(constraint, models.CheckConstraint):
            conditions.append(models.Q(constraint.condition))
        else:
            yield constraint
    if conditions:
        yield models.CheckConstraint(condition=models.Q(*conditions), name="all_checks")


def _reject_unstorable(obj: models.Model) -> None:
    for field in obj._meta.concrete_fields:
        where = find_unstorable(getattr(obj, field.attname), field.name)
        if where is not None:
            raise InvalidInput({where: UNSTORABLE})


def _reference_counts(obj: models.Model) -> list[str]:
    """Return the counts of objects that protect this one, such as `3 sessions`."""
    uses = []
    for relation in obj._meta.related_objects:
        if relation.on_delete is models.PROTECT and not relation.hidden:
            count = relation.related_model._base_manager.filter(**{relation.field.name: obj}).count()
            kind = relation.related_model._meta
            if count:
                uses.append(f"{count:,} {kind.verbose_name if count == 1 else kind.verbose_name_plural}")
    return uses


def _public_field(key: str) -> str:
    return "__all__" if key == NON_FIELD_ERRORS else key
