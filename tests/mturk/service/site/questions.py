"""Questions of a study as in its settings file."""

from bws.base.settings_files import SettingsText
from mturk.service.site.study_questions import StudyQuestion, questions_with_presets


def read_questions(tables):
    """Return the questions; InputError with all problems."""
    return SettingsText("questions", {}, {}).parsed(
        tuple[StudyQuestion, ...], questions_with_presets([*tables])
    )
