import { withoutEnd } from '../../core/trim'
import { createHash } from 'node:crypto'
import type { Backend } from '../../backends/backend'
import { failureOf } from '../../backends/errors'
import type { PlanInput, PlanOutcome } from '../../core/activities'
import type { JobSpec } from '../../core/job/job'
import type { BackendName, Offer, Pins } from '../../core/offer'
import { offerFault } from '../../core/figures'
import { plural } from '../../core/plural'
import type { BackendAnswer, PlanFacts, SilentBackend } from '../../core/job/plan'
import type { ResourceRequest } from '../../core/resources'
import type { SavedBefore } from '../../core/job/saving'
import type { Asker, OffersInput } from '../../core/job/waiting'
import { diskLoadOf } from '../../planner/plan/disk-load'
import type { InputSizes } from './input-sizes'

/** How a plan asks the backends: through their workers, or in the same process. */
export type AskOffers = (
  backend: BackendName,
  request: ResourceRequest,
  more?: {
    pins?: Pins | undefined
    image?: string | undefined
    asker?: Asker | undefined
    /** Signal that aborts when the answer is no longer needed. */
    signal?: AbortSignal
  },
) => Promise<BackendAnswer>

interface AskDeps {
  backends: readonly BackendName[]
  askOffers: AskOffers
  inputSizes?: InputSizes
}

/**
 * Asks every backend that the job may use, in parallel; a backend that does not answer is listed with the reason. If an offer has a price
 * for moving data, the job's inputs are measured.
 */
export async function askAll(
  { backends, askOffers, inputSizes }: AskDeps,
  { resolved: { spec }, target, pins }: PlanInput,
  { asker, savedBefore }: { asker?: Asker | undefined; savedBefore?: SavedBefore | undefined } = {},
): Promise<Pick<PlanFacts, 'answers' | 'silentBackends' | 'inputSizes'>> {
  const wanted = target === undefined ? spec.backends : [target]
  const asked = backends.filter(
    (name) => wanted.length === 0 || wanted.some(({ backend }) => backend === name),
  )
  const settled = await Promise.allSettled(
    asked.map((name) =>
      askOffers(name, requestOf(spec, savedBefore), { pins: pins?.[name], image: spec.image, asker }),
    ),
  )
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
  return { answers, silentBackends, inputSizes: (await inputSizes?.(spec, answers)) ?? [] }
}

/** Returns the job's request for a backend, with the load that the plan expects of the machine's disk. */
function requestOf(spec: JobSpec, savedBefore: SavedBefore | undefined): ResourceRequest {
  return { ...spec.resources, diskLoadMibPerHour: diskLoadOf(spec, savedBefore) }
}

/** Returns the answers of backends that the job does not allow, for the gain of a change. Answers after the signal are ignored. */
export async function askOthers(
  { backends, askOffers }: Pick<AskDeps, 'backends' | 'askOffers'>,
  spec: JobSpec,
  signal: AbortSignal,
): Promise<BackendAnswer[]> {
  const others = backends.filter(
    (name) => spec.backends.length > 0 && !spec.backends.some(({ backend }) => backend === name),
  )
  const answers = await Promise.all(
    others.map((name) =>
      Promise.race([
        askOffers(name, requestOf(spec, undefined), { image: spec.image, signal }),
        untilAborted(signal),
      ]).catch(() => undefined),
    ),
  )
  return answers.flatMap((answer) => answer ?? [])
}

function untilAborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined)
    signal.addEventListener('abort', () => resolve(undefined), { once: true })
  })
}

/** The number of places that a backend counts for a job; `undefined` if none counts. */
export function freePlacesIn(answers: readonly BackendAnswer[]): number | undefined {
  const counts = answers.flatMap(({ offers }) => offers.flatMap(({ freePlaces }) => freePlaces ?? []))
  return counts.length === 0 ? undefined : Math.max(...counts)
}

/**
 * Releases the places that backends held for a job, except at the one that gets its order. If a message is lost, the place is held for half
 * a minute.
 */
export function letPlacesGo(askOffers: AskOffers, { asker, outcome, answers, resources }: HeldPlaces): void {
  if (asker === undefined) return
  const ordered = outcome.kind === 'place' ? outcome.order.backend : undefined
  for (const answer of answers) {
    if (answer.backend === ordered || !hasPlace(answer)) continue
    const gone = { asker: { ...asker, isGone: true } }
    void askOffers(answer.backend, resources, gone).catch(() => undefined)
  }
}

interface HeldPlaces {
  asker: Asker | undefined
  outcome: PlanOutcome
  answers: readonly BackendAnswer[]
  resources: ResourceRequest
}

const hasPlace = ({ offers }: BackendAnswer): boolean =>
  offers.some(({ freePlaces, availability }) => freePlaces !== undefined && availability === 'available')

/** The offers of a backend, with the parts of its provider that did not answer. */
export async function answerOf(
  backend: Backend,
  { request, pins, image, asker }: OffersInput,
  signal: AbortSignal,
): Promise<BackendAnswer> {
  const silentPlaces: { place: string; reason: string }[] = []
  const unseen = (place: string, error: unknown): void => {
    silentPlaces.push({ place, reason: reasonOf(error) })
  }
  const found = await backend.offers(request, { signal, unseen, image, asker }, pins)
  const offers = found.filter((offer) => offerFault(offer) === undefined)
  silentPlaces.push(...leftOut(found))
  const { name, capabilities } = backend
  return {
    backend: name,
    capabilities,
    offers,
    silentPlaces: silentPlaces.length > 0 ? silentPlaces : undefined,
  }
}

/** Offers by whose figures nothing can be chosen, as one remark. */
function leftOut(offers: readonly Offer[]): { place: string; reason: string }[] {
  const faulty = offers.filter((offer) => offerFault(offer) !== undefined)
  const [first] = faulty
  if (first === undefined) return []
  const others = faulty.length === 1 ? '' : ` and ${plural(faulty.length - 1, 'other offer')}`
  const reason = `the ${first.capacityType} offer of ${first.type}${others} cannot be used: ${offerFault(first)}`
  return [{ place: first.place, reason }]
}

/** The error, and what to do about it: the job shows it while it waits. */
function reasonOf(error: unknown): string {
  const { message, hint } = failureOf(error)
  const sentences = hint === undefined || message.includes(hint) ? [message] : [message, hint]
  return sentences.map((sentence) => withoutEnd(sentence, '. \n')).join('. ')
}

export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
