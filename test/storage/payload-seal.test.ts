import { describe, expect, it } from '@jest/globals'
import { refusalOfArguments } from '../../core/stamps'
import { PayloadSeal, SealError, type SealContext, type SealedPayload } from '../../storage/payload-seal'

const KEY = Buffer.alloc(32, 1)
const WORKFLOW: SealContext = { type: 'workflow', namespace: 'default', workflowId: 'job/job-a' }
const ACTIVITY: SealContext = {
  type: 'activity',
  namespace: 'default',
  workflowId: 'job/job-a/1',
  activityId: '3',
  isLocal: false,
}

function sealWith(key: Buffer | undefined, onRefused: 'mark' | 'throw' = 'mark'): PayloadSeal {
  return new PayloadSeal({ key: async () => key, onRefused })
}

function payloadOf(value: unknown): SealedPayload {
  return { metadata: { encoding: Buffer.from('json/plain') }, data: Buffer.from(JSON.stringify(value)) }
}

function valueOf({ data }: SealedPayload): unknown {
  return JSON.parse(Buffer.from(data!).toString('utf8'))
}

describe('PayloadSeal', () => {
  it('leaves encoding and data readable for the Temporal UI, and gives them back as they were', async () => {
    const payloads = [payloadOf({ run: 'python3 train.py' }), payloadOf(2)]
    const sealed = await sealWith(KEY).encode(payloads, WORKFLOW)
    expect(sealed.map(({ data }) => data)).toEqual(payloads.map(({ data }) => data))
    expect(sealed.map(({ metadata }) => metadata!['encoding'])).toEqual(
      payloads.map(({ metadata }) => metadata!['encoding']),
    )
    expect(JSON.stringify(sealed)).not.toContain(KEY.toString('hex'))
    expect(await sealWith(KEY).decode(sealed, WORKFLOW)).toEqual(payloads)
  })

  it('takes an empty value of the workflow sandbox, which comes as a plain array', async () => {
    const empty = { metadata: { encoding: Buffer.from('binary/null') }, data: [] as unknown as Uint8Array }
    const sealed = await sealWith(KEY).encode([empty], WORKFLOW)
    const received = sealed.map((payload) => ({ ...payload, data: new Uint8Array() }))
    expect(
      refusalOfArguments((await sealWith(KEY).decode(received, WORKFLOW)).map(valueOrNothing)),
    ).toBeUndefined()
  })

  it.each<[string, (sealed: SealedPayload[]) => SealedPayload[], SealContext]>([
    ['another workflow', (sealed) => sealed, { ...WORKFLOW, workflowId: 'job/job-b' }],
    ['another namespace', (sealed) => sealed, { ...WORKFLOW, namespace: 'other' }],
    ['an activity', (sealed) => sealed, ACTIVITY],
    [
      'other data',
      ([first, second]) => [{ ...first, data: Buffer.from('{"run":"evil"}') }, second!],
      WORKFLOW,
    ],
    ['another order', (sealed) => [...sealed].reverse(), WORKFLOW],
    ['fewer arguments', (sealed) => sealed.slice(0, 1), WORKFLOW],
    ['more arguments', (sealed) => [...sealed, sealed[0]!], WORKFLOW],
    [
      'another encoding',
      (sealed) =>
        sealed.map((each) => ({
          ...each,
          metadata: { ...each.metadata, encoding: Buffer.from('binary/plain') },
        })),
      WORKFLOW,
    ],
  ])('refuses what was signed when it comes with %s', async (_what, change, context) => {
    const sealed = await sealWith(KEY).encode([payloadOf({ run: 'ls' }), payloadOf(2)], WORKFLOW)
    const read = await sealWith(KEY).decode(change(sealed), context)
    for (const payload of read)
      expect(refusalOfArguments([valueOf(payload)])).toBe("it is not signed with this deployment's key")
  })

  it.each<[string, SealContext, SealContext]>([
    ['activity', ACTIVITY, { ...ACTIVITY, activityId: '4' }],
    ['kind of activity', ACTIVITY, { ...ACTIVITY, isLocal: true }],
  ])('refuses what was signed for another %s', async (_what, signed, read) => {
    const [payload] = await sealWith(KEY).decode(await sealWith(KEY).encode([payloadOf(1)], signed), read)
    expect(refusalOfArguments([valueOf(payload!)])).toBeDefined()
  })

  it('distinguishes unsigned data from data signed with another key, and accepts neither', async () => {
    const foreign = await sealWith(Buffer.alloc(32, 2)).encode([payloadOf(1)], WORKFLOW)
    expect(refusalOfArguments([valueOf((await sealWith(KEY).decode(foreign, WORKFLOW))[0]!)])).toMatch(
      /deployment's key/,
    )
    const bare = await sealWith(KEY).decode([payloadOf(1)], WORKFLOW)
    expect(refusalOfArguments([valueOf(bare[0]!)])).toBe('it is not signed')
  })

  it('accepts a workflow that a schedule starts, whose id has the time added', async () => {
    const scheduled: SealContext = { ...WORKFLOW, workflowId: 'garbageCollection' }
    const sealed = await sealWith(KEY).encode([payloadOf(1)], scheduled)
    const started = { ...scheduled, workflowId: 'garbageCollection-2026-11-22T18:10:00Z' }
    expect((await sealWith(KEY).decode(sealed, started)).map(valueOf)).toEqual([1])
  })

  it('takes an empty id of a workflow for none, as workers have it for an activity outside workflows', async () => {
    const client: SealContext = { type: 'activity', namespace: 'default', activityId: '3', isLocal: false }
    const sealed = await sealWith(KEY).encode([payloadOf(1)], client)
    expect((await sealWith(KEY).decode(sealed, { ...client, workflowId: '' })).map(valueOf)).toEqual([1])
  })

  it('throws where it was asked to', async () => {
    const error: unknown = await sealWith(KEY, 'throw')
      .decode([payloadOf({ deployment: 'dep-x' })], WORKFLOW)
      .catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(SealError)
    expect(error).toMatchObject({ message: 'it is not signed' })
  })

  it('notes which deployment a refused payload names', async () => {
    const [note] = await sealWith(KEY).decode([payloadOf({ deployment: 'dep-x' })], WORKFLOW)
    const claim = { crucibleRefused: 'it is not signed', claimedDeployment: 'dep-x' }
    expect(valueOf(note!)).toEqual(claim)
  })

  it('only reads without a key', async () => {
    const sealed = await sealWith(KEY).encode([payloadOf(1)], WORKFLOW)
    expect((await sealWith(undefined).decode(sealed, WORKFLOW)).map(valueOf)).toEqual([1])
    expect(await sealWith(undefined).encode([payloadOf(1)], WORKFLOW)).toEqual([payloadOf(1)])
  })
})

function valueOrNothing({ data }: SealedPayload): unknown {
  return data?.length === 0 ? undefined : JSON.parse(Buffer.from(data!).toString('utf8'))
}
