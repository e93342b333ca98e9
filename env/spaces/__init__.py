"""Spaces: the candidates of one language. Knob spaces can be listed, schedules are drawn without
end, sources are written by somebody else.
"""

from __future__ import annotations

SPACES: dict[str, str] = {
    "knobs": "kernelwright.env.spaces.knobs:KnobSpace",
    "schedule": "kernelwright.env.spaces.schedule:ScheduleSpace",
    "template": "kernelwright.env.spaces.knobs:TemplateSpace",
    "source": "kernelwright.env.spaces.source:SourceSpace",
}
