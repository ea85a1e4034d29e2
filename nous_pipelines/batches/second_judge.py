"""A language model as the second judge of a night: who is asked, in batches or directly, and what a look brings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

from nous_online.core.errors import InvalidInput, Unsupported
from nous_online.core.settings import Settings
from nous_online.database.connection import Database
from nous_online.language.claude.client import Claude, claude_of, model_client
from nous_online.language.claude.replies import LLMError
from nous_online.language.claude.spending import has_price
from nous_pipelines.batches.batch_requests import Models
from nous_pipelines.batches.batch_rows import last_imported, results_root
from nous_pipelines.batches.collecting import Collected, collect
from nous_pipelines.batches.direct import ask_directly
from nous_pipelines.batches.sending import AgentQuestions, SentBatches, send

IN_A_ROW = 2
"""Batches one after the other that are not believed, after which a person has to look."""
PROBES = 1
"""Batches a night sends to a judge that is not believed: enough to notice that it can be again."""


@dataclass(frozen=True)
class SecondJudge:
    """Who is asked about pairs, by the settings of this process: Claude in batches, any other model directly."""

    settings: Settings

    @classmethod
    def of(cls, settings: Settings) -> SecondJudge | None:
        """Return whom to ask; None where the offline judge alone decides."""
        return cls(settings) if settings.asks_model else None

    @classmethod
    def collector(cls, settings: Settings) -> SecondJudge | None:
        """Return who brings home what is paid for, also where nobody is asked any more; None without Claude's key."""
        is_claude_asked = settings.asks_model and settings.provider == "anthropic"
        return cls(settings) if is_claude_asked or settings.anthropic_api_key.get_secret_value() else None

    @property
    def models(self) -> Models:
        """Who judges, and who is asked once when it refuses."""
        return Models(self.settings.judge_model, self.settings.writer_model)

    def claude(self) -> Claude:
        """Return a client that is open; raise `InvalidInput` or `Unsupported` when there can be none."""
        claude = claude_of(self.settings)
        claude.open()
        return claude

    def look(self, database: Database, home: Path, *, seconds: float, agent_ids: Sequence[str] = ()) -> Collected:
        """Bring home what has ended, waiting for nothing; what is in the way is told, not raised."""
        root = results_root(home, database)
        try:
            return collect(database, self.claude(), root, now=datetime.now(UTC), agent_ids=agent_ids, seconds=seconds)
        except (InvalidInput, Unsupported, LLMError) as error:
            return Collected(troubles=(str(error),))

    def send(self, database: Database, wanted: Iterable[AgentQuestions], *, night: date) -> SentBatches:
        """Send what is open, one batch at the most to a judge that is not believed; obstacles are told, not raised.

        A model that takes no batches is asked here and now, and its verdicts count in a later night just the same.
        """
        if self.settings.provider == "openai":
            try:
                client = model_client(self.settings)
                client.open()
            except (InvalidInput, Unsupported) as error:
                return SentBatches(obstacles=[str(error)])
            sent = ask_directly(database, client, wanted, night=night, models=self.models)
            sent.warnings += self.unpriced()
            return sent
        distrusted = self.distrust(database)
        try:
            most = PROBES if distrusted else None
            sent = send(database, self.claude(), wanted, night=night, models=self.models, most_batches=most)
        except (InvalidInput, Unsupported) as error:
            return SentBatches(obstacles=[str(error), *distrusted])
        if distrusted:
            sent.obstacles += [*distrusted, "until then a night sends one batch at the most, to see whether that holds"]
        return sent

    def unpriced(self) -> list[str]:
        """Return what to know about a model that may charge for tokens nobody knows the price of."""
        models = {self.models.judge, self.models.fallback}
        unknown = sorted(model for model in models if not has_price(model) and not self.settings.is_local)
        told = "so it counts as 0 and max_cost_usd does not limit it; write it into the file named by NOUS_PRICES"
        return [f"no price is known for {model}, {told}" for model in unknown]

    def distrust(self, database: Database) -> list[str]:
        """Return why this model's answers can't be used: its last batches were not believed, or not understood."""
        model = self.models.judge
        with database.transaction() as connection:
            latest = last_imported(connection, model)
        said: list[str] = []
        if len(latest) == IN_A_ROW and all(wrong for wrong, _ in latest):
            said.append(
                f"{IN_A_ROW} batches of {model} in a row were not believed ({'; '.join(latest[0][0])}); "
                "set NOUS_JUDGE_MODEL to another model, or NOUS_JUDGE=offline"
            )
        for _, types in latest[:1]:
            said += [f"the last batch held results of the unknown type {each}; update Nous" for each in types]
        return said
