"""Base form, fields and widgets of pages."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from django import forms
from django.forms.fields import InvalidJSONInput
from django.forms.utils import flatatt
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from lcm.domain.errors import InvalidInput
from lcm.domain.storable_text import UNSTORABLE, find_unstorable
from lcm.extensions import Extension

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

# Widgets without the look of a text field.
UNSTYLED = forms.CheckboxInput | forms.RadioSelect | forms.CheckboxSelectMultiple | forms.HiddenInput


def add_errors(form: forms.BaseForm, error: InvalidInput) -> None:
    """Add a service's errors to their fields, and errors without a field above the form."""
    for name, texts in error.fields.items():
        field = name if name in form.fields else None
        for text in texts:
            label = "" if field or name == "__all__" else f"{name.replace('_', ' ').capitalize()}: "
            form.add_error(field, f"{label}{text}")


class PageForm(forms.Form):
    """A form whose inputs carry LCM's CSS classes."""

    # Shown instead of “optional” beside the label of a field.
    optional_words: Mapping[str, StrOrPromise] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"label_suffix": "", **kwargs})
        for name, field in self.fields.items():
            widget = field.widget
            if name in self.optional_words:
                vars(field)["optional_word"] = self.optional_words[name]
            if isinstance(field, LocalDateTimeField):
                zone = gettext("In %(zone)s.") % {"zone": timezone.get_current_timezone_name()}
                field.help_text = f"{field.help_text} {zone}".strip()
            if not isinstance(widget, UNSTYLED):
                widget.attrs.setdefault("class", "input")
            if isinstance(field, forms.ModelChoiceField) and field.empty_label:
                field.empty_label = gettext("Choose one")

    def get_initial_for_field(self, field: forms.Field, field_name: str) -> Any:
        """Format numbers without trailing zeros: 48, not 48.00."""
        value = super().get_initial_for_field(field, field_name)
        return f"{value.normalize():f}" if isinstance(value, Decimal) else value


class ReasonForm(PageForm):
    """A form that requires a reason."""

    reason = forms.CharField(
        label=_("Reason"),
        max_length=500,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=_("Recorded in the change log under your name."),
    )


class LocalDateTimeField(forms.DateTimeField):
    """A time in the person's time zone, with the browser's own picker."""

    widget = forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")

    def widget_attrs(self, widget: forms.Widget) -> dict[str, Any]:
        return {**super().widget_attrs(widget), "step": "60"}


class LongSelect(forms.Select):
    """A select with hundreds of options, rendered in one go: Django renders a template per option."""

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        chosen = str(value or "")
        options = format_html_join(
            "",
            '<option value="{}"{}>{}</option>',
            ((key, mark_safe(" selected") if key == chosen else "", label) for key, label in self.choices),
        )
        attributes = flatatt(self.build_attrs(self.attrs, attrs))
        return format_html('<select name="{}"{}>{}</select>', name, attributes, options)


# Numbers with too many digits, and too many brackets; Django does not expect them.
UNREADABLE_JSON = (ValueError, RecursionError)


class JsonField(forms.JSONField):
    """JSON with text that can be stored; rejected input is shown again as typed."""

    def to_python(self, value: Any) -> Any:
        try:
            found = super().to_python(value)
        except UNREADABLE_JSON as error:
            raise forms.ValidationError(
                self.error_messages["invalid"], code="invalid", params={"value": value}
            ) from error
        if find_unstorable(found) is not None:
            raise forms.ValidationError(UNSTORABLE)
        return found

    def bound_data(self, data: Any, initial: Any) -> Any:
        try:
            found = super().bound_data(data, initial)
        except UNREADABLE_JSON:
            return InvalidJSONInput(data)
        return found if find_unstorable(found) is None else InvalidJSONInput(data)


class ObjectField(JsonField):
    """A JSON object; an empty object is shown as an empty box."""

    def prepare_value(self, value: Any) -> Any:
        return "" if value in (None, {}) else super().prepare_value(value)


class SuggestedField(forms.CharField):
    """A name with suggestions while typing; without JavaScript a plain text field."""

    def __init__(self, *, suggest: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.suggest = suggest

    def options(self) -> list[str]:
        """Return the first names, for browsers without JavaScript."""
        return Extension.installed().suggestions[self.suggest]("")


class NamedField(SuggestedField):
    """An object, selected by its name."""

    def __init__(self, *, find: Any, suggest: str, **kwargs: Any) -> None:
        super().__init__(suggest=suggest, **kwargs)
        self.find = find

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        if not text:
            return None
        found = self.find(text)
        if found is None:
            raise forms.ValidationError(gettext("There is no “%(name)s”.") % {"name": text})
        return found


class EitherFieldMixin:
    """Two fields of which one is required; the form checks both."""

    def validate(self, value: Any) -> None:
        pass


class EitherFile(EitherFieldMixin, forms.FileField):
    pass


class EitherText(EitherFieldMixin, forms.CharField):
    pass
