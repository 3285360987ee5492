import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import type { OwnerLookup } from '../../activities/garbage/garbage'
import { BackendError } from '../../backends/errors'
import type { CollectGarbageInput } from '../../core/activities'
import type { OwnedResource } from '../../core/handle'
import type { GarbageVerdict } from '../../core/messages'
import type { Order } from '../../core/job/plan'
import { putDocument } from '../../storage/json'
import { layout } from '../../storage/layout'
import { notePlace } from '../../storage/places'
import { perform, Place } from './place'

const DEPLOYMENT = 'dep-0123456789'
type Fate = Awaited<ReturnType<OwnerLookup>>

let place: Place
/** What the server answered of each workflow; those not named are unknown to it. */
let fates: Record<string, Fate | Error>

beforeEach(async () => {
  place = await Place.make()
  fates = {}
  await putDocument(place.store, layout.deployment(), { id: DEPLOYMENT })
})
afterEach(() => place.dispose())

const owners: OwnerLookup = async ({ jobId, attempt }) => {
  const fate = fates[attempt === undefined ? jobId : `${jobId}/${attempt}`] ?? 'absent'
  if (fate instanceof Error) throw fate
  return fate
}

function collect(over: Partial<CollectGarbageInput> = {}): Promise<GarbageVerdict[]> {
  const input = { deployment: DEPLOYMENT, backend: 'scripted', candidates: [], isDryRun: false, ...over }
  return perform(place.verbs({ owners }), 'collectGarbage', input)
}

function machine(jobId: string, attempt = 1): { id: string; order: Order } {
  const order = place.order({ jobId, attempt, deployment: DEPLOYMENT })
  return { order, id: place.launched(order).handle.id }
}

/** A sweep as the workflow makes it: what was unowned the first time may be ended the second. */
async function sweep(): Promise<GarbageVerdict[]> {
  const first = await collect()
  const candidates = first.filter(({ action }) => action === 'would-end').map(({ id }) => id)
  return collect({ candidates })
}

describe('a machine of a living job', () => {
  it.each<[string, Record<string, Fate>]>([
    ['whose attempt runs', { 'job-a': 'open', 'job-a/1': 'open' }],
    ['whose attempt runs, though its job was ended by hand', { 'job-a': 'closed', 'job-a/1': 'open' }],
    ['whose attempt has ended and is being settled', { 'job-a': 'open', 'job-a/1': 'closed' }],
    ['whose attempt the server does not know yet', { 'job-a': 'open' }],
  ])('is never ended, candidate or not: %s', async (_name, known) => {
    fates = known
    const { id } = machine('job-a')
    expect(await collect({ candidates: [id] })).toMatchObject([{ id, action: 'kept' }])
    expect(place.lives()).toEqual(['alive'])
  })

  it('is not ended when its job came to life between two looks', async () => {
    const { id } = machine('job-a')
    expect(await collect()).toMatchObject([{ action: 'would-end' }])
    fates = { 'job-a': 'open', 'job-a/1': 'open' }
    expect(await collect({ candidates: [id] })).toMatchObject([{ action: 'kept' }])
    expect(place.lives()).toEqual(['alive'])
  })

  it('is not ended while the server cannot say who lives', async () => {
    fates = { 'job-b': new Error('UNAVAILABLE') }
    const ids = [machine('job-a').id, machine('job-b').id]
    await expect(collect({ candidates: ids.slice(1) })).rejects.toThrow('UNAVAILABLE')
    expect(place.lives()).toEqual(['alive', 'alive'])
  })
})

describe('an ended machine', () => {
  it('is on record for views of a job that Temporal no longer knows', async () => {
    const { id, order } = machine('job-a')
    await sweep()
    const key = layout.endedMachine(order.jobId, order.attempt, id)
    const ended = JSON.parse((await place.store.get(key))!.toString()) as { endedAtMs: number }
    expect(ended.endedAtMs).toBeGreaterThan(0)
  })
})

describe('an orphaned machine', () => {
  it.each<[string, Record<string, Fate>, string]>([
    ['of a job that Temporal does not know', {}, 'job job-a is unknown'],
    ['of a job that is over', { 'job-a': 'closed', 'job-a/1': 'closed' }, 'job job-a is over'],
    [
      'of an attempt that its job has left behind',
      { 'job-a': 'open', 'job-a/1': 'closed', 'job-a/2': 'open' },
      'job job-a is on a later attempt',
    ],
  ])('is ended after its grace, and not before: %s', async (_name, known, reason) => {
    fates = known
    machine('job-a')
    expect(await collect()).toMatchObject([
      { action: 'would-end', reason: `${reason}; waiting for the grace period` },
    ])
    expect(place.lives()).toEqual(['alive'])
    expect(await sweep()).toMatchObject([{ action: 'ended', reason, owner: 'job-a-1' }])
    expect(place.lives()).toEqual(['gone'])
  })

  it('is only spoken of in a dry run', async () => {
    const { id } = machine('job-a')
    expect(await collect({ candidates: [id], isDryRun: true })).toMatchObject([{ action: 'would-end' }])
    expect(place.lives()).toEqual(['alive'])
  })

  it('waits for its own grace when it is found with one whose grace is over', async () => {
    const { id } = machine('job-a')
    machine('job-b')
    expect(await collect({ candidates: [id] })).toMatchObject([{ action: 'ended' }, { action: 'would-end' }])
    expect(place.lives()).toEqual(['gone', 'alive'])
  })

  it('that cannot be ended is reported, and keeps no other from its end', async () => {
    const failure = { class: 'auth', message: 'the key was revoked' } as const
    const { order } = machine('job-a')
    machine('job-b')
    place.world.faults.add('terminate', { kind: 'throws', failure }, { attemptId: order.attemptId })
    expect(await sweep()).toMatchObject([
      { action: 'failed', reason: 'the key was revoked' },
      { action: 'ended' },
    ])
    expect(place.lives()).toEqual(['alive', 'gone'])
  })
})

describe('what is unowned, and young', () => {
  it('is not ended, whatever grace was waited out', async () => {
    const { id } = machine('job-a')
    const candidates = [id]
    expect(await collect({ candidates, youngMs: 600_000 })).toMatchObject([
      { action: 'kept', reason: 'job job-a is unknown; but it was created within the last 10m' },
    ])
    // A provider whose clock is ahead of Crucible's makes it younger still.
    place.aheadMs = -300_000
    expect(await collect({ candidates, youngMs: 60_000 })).toMatchObject([{ action: 'kept' }])
    place.aheadMs = 601_000
    expect(await collect({ candidates, youngMs: 600_000 })).toMatchObject([{ action: 'ended' }])
  })
})

describe('what serves many jobs', () => {
  const leftover = (id: string, use: OwnedResource['use']): OwnedResource => ({
    handle: { backend: 'scripted', kind: 'template', id },
    owner: { deployment: DEPLOYMENT, jobId: '', attemptId: '' },
    createdAtMs: 0,
    description: 'launch template',
    costMicroUsdPerDay: 0,
    use,
  })

  it('is judged by its use, and ended like everything else', async () => {
    fates = { '': new Error('must not be asked') }
    const used = leftover('a', { isNeeded: true, reason: 'a machine uses it' })
    const unused = leftover('b', { isNeeded: false, reason: 'no machine uses it' })
    const ended: string[] = []
    place.backend.leftovers = async () => [used, unused]
    place.backend.terminate = async ({ id }) => void ended.push(id)
    expect(await collect()).toMatchObject([
      { id: 'a', action: 'kept', reason: 'a machine uses it', costMicroUsdPerDay: 0 },
      { id: 'b', action: 'would-end', reason: 'no machine uses it; waiting for the grace period' },
    ])
    expect(await sweep()).toMatchObject([{ action: 'kept' }, { id: 'b', action: 'ended' }])
    expect(ended).toEqual(['b'])
  })

  it('keeps no machine from its end where it may not be seen, which is reported', async () => {
    machine('job-a')
    place.backend.leftovers = async () => {
      throw new BackendError({ class: 'auth', message: 'No.', hint: 'Allow it.' })
    }
    expect(await sweep()).toMatchObject([
      { action: 'ended' },
      { action: 'unseen', kind: 'leftovers', reason: 'No. Allow it.' },
    ])
  })
})

describe('a place of earlier settings', () => {
  /** A provider with two parts; the settings name one of them. */
  async function moved(): Promise<{ looks: (readonly string[])[]; failing: Map<string, Error> }> {
    const looks: (readonly string[])[] = []
    const failing = new Map<string, Error>()
    Object.assign(place.backend, { places: ['here'] })
    const list = place.backend.list.bind(place.backend)
    place.backend.list = async (deployment, ctx) => {
      looks.push(ctx.alsoAt ?? [])
      for (const [name, error] of failing) ctx.unseen?.(name, error)
      return list(deployment, ctx)
    }
    for (const each of ['here', 'there']) await notePlace(place.store, { backend: 'scripted', place: each })
    await notePlace(place.store, { backend: 'another', place: 'elsewhere' })
    return { looks, failing }
  }

  it('is looked at as well, until its note is deleted', async () => {
    const { looks } = await moved()
    expect(await collect()).toEqual([])
    await place.store.delete('places/scripted/there.json')
    await collect()
    expect(looks).toEqual([['there'], []])
  })

  it('is reported if it does not answer, and keeps no machine elsewhere from its end', async () => {
    const { failing } = await moved()
    failing.set('there', new BackendError({ class: 'auth', message: 'No.', hint: 'Allow it.' }))
    machine('job-a')
    expect(await sweep()).toMatchObject([
      { action: 'ended' },
      {
        action: 'unseen',
        kind: 'place',
        place: 'there',
        reason: expect.stringMatching(
          /^No. Allow it. Earlier settings .* delete places\/scripted\/there.json/,
        ),
      },
    ])
  })
})

describe('what belongs to others', () => {
  it("is not touched: another deployment's, even when the provider's filter lets it through", async () => {
    const { id } = machine('job-a')
    const list = place.backend.list.bind(place.backend)
    place.backend.list = async (deployment, ctx) =>
      (await list(deployment, ctx)).map((found) => ({
        ...found,
        owner: { ...found.owner, deployment: 'dep-zzzzzzzzzz' },
      }))
    expect(await collect({ candidates: [id] })).toEqual([])
    expect(place.lives()).toEqual(['alive'])
  })

  it.each([
    ['another', { id: 'dep-zzzzzzzzzz' }],
    ['no', undefined],
  ])('is not even listed when the store holds %s deployment', async (_name, stored) => {
    const { id } = machine('job-a')
    await place.store.delete(layout.deployment())
    if (stored !== undefined) await putDocument(place.store, layout.deployment(), stored)
    await expect(collect({ candidates: [id] })).rejects.toMatchObject({
      type: 'invalid',
      nonRetryable: true,
      message: expect.stringContaining(DEPLOYMENT),
      details: [{ hint: expect.stringContaining('crucible gc --adopt') }],
    })
    expect(place.world.callsOf('list')).toEqual([])
  })

  it("is kept for an open job where a resource carries no attempt's name", async () => {
    const { id } = machine('job-a')
    fates = { 'job-a': 'open' }
    const list = place.backend.list.bind(place.backend)
    place.backend.list = async (deployment, ctx) =>
      (await list(deployment, ctx)).map((found) => ({
        ...found,
        owner: { ...found.owner, attemptId: 'job' },
      }))
    expect(await collect({ candidates: [id] })).toMatchObject([
      { action: 'kept', reason: 'job job-a is open' },
    ])
    fates = { 'job-a': 'closed' }
    expect(await collect({ candidates: [id] })).toMatchObject([{ action: 'ended' }])
  })
})
