import { createHash } from 'node:crypto'
import type { Backend } from '../backends/backend'
import { failureOf } from '../backends/errors'
import type { PlanInput } from '../core/activities'
import type { BackendName, Pins } from '../core/offer'
import type { BackendAnswer, SilentBackend } from '../core/plan'
import type { ResourceRequest } from '../core/resources'
import { putDocumentIfAbsent } from '../storage/json'
import { layout } from '../storage/layout'
import type { ObjectStore } from '../storage/store'

/** How a plan reaches the backends: through their workers, or in the same process. */
export type AskOffers = (
  backend: BackendName,
  request: ResourceRequest,
  pins?: Pins,
) => Promise<BackendAnswer>

/** Asks every backend that the job may run on, at once; one that does not answer is named, with its reason. */
export async function askAll(
  { backends, askOffers }: { backends: readonly BackendName[]; askOffers: AskOffers },
  { resolved: { spec }, target, pins }: PlanInput,
): Promise<{ answers: BackendAnswer[]; silentBackends: SilentBackend[] }> {
  const wanted = target === undefined ? spec.backends : [target]
  const asked = backends.filter(
    (name) => wanted.length === 0 || wanted.some(({ backend }) => backend === name),
  )
  const settled = await Promise.allSettled(asked.map((name) => askOffers(name, spec.resources, pins?.[name])))
  const answers: BackendAnswer[] = []
  const silentBackends: SilentBackend[] = []
  settled.forEach((result, index) => {
    const backend = asked[index]!
    if (result.status === 'rejected') {
      silentBackends.push({ backend, reason: reasonOf(result.reason) })
      return
    }
    answers.push(result.value)
    for (const silent of result.value.silentPlaces ?? []) silentBackends.push({ backend, ...silent })
  })
  return { answers, silentBackends }
}

/** The offers of a backend, with the parts of its provider that gave none because they did not answer. */
export async function answerOf(
  backend: Backend,
  { request, pins }: { request: ResourceRequest; pins?: Pins | undefined },
  signal: AbortSignal,
): Promise<BackendAnswer> {
  const silentPlaces: { place: string; reason: string }[] = []
  const unseen = (place: string, error: unknown): void => {
    silentPlaces.push({ place, reason: reasonOf(error) })
  }
  const offers = await backend.offers(request, { signal, unseen }, pins)
  const { name, capabilities } = backend
  return { backend: name, capabilities, offers, ...(silentPlaces.length > 0 && { silentPlaces }) }
}

/** What went wrong, and what to do about it: the job says it while it waits. */
function reasonOf(error: unknown): string {
  const { message, hint } = failureOf(error)
  const sentences = hint === undefined || message.includes(hint) ? [message] : [message, hint]
  return sentences.map((sentence) => sentence.replace(/[.\s]+$/, '')).join('. ')
}

/** `market/`: the offers as they were seen, under their digest, so that a decision can be looked at again later. */
export async function keepOffers(store: ObjectStore, answer: BackendAnswer): Promise<string> {
  const digest = sha256(JSON.stringify(answer))
  await putDocumentIfAbsent(store, layout.market(answer.backend, digest), answer)
  return digest
}

export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
