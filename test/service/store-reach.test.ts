import { describe, expect, it } from '@jest/globals'
import type { Backend } from '../../backends/backend'
import { BACKENDS, type ReadSettings } from '../../backends/registry'
import { isOnLoopback } from '../../backends/loopback'
import type { ObjectStore } from '../../storage/store'
import type { WorkerConfig } from '../../service/config'
import { makeBackend } from '../../service/make-backend'
import { storeReachProblem, withStoreReach } from '../../service/store-reach'
import { patiently } from '../backends/harness'
import { DrivenClock } from '../backends/scripted/clock'
import { ScriptedHarness } from '../backends/scripted/harness'
import { ReservationMarket } from '../backends/scripted/reserving/market'
import { createScriptedReserving } from '../backends/scripted/reserving/reserving'
import type { ReservationOrder } from '../../core/reservation/reservation'
import { discounted } from '../../service/discount'

const REMOTE = { isRemote: true, needsGrants: true }
const BUCKET = 's3://bucket/prefix?region=eu-west-1'
const problemOf = (storeUrl: string, read = REMOTE, hasPermanentKeys = false) =>
  storeReachProblem(read, { storeUrl, hasPermanentKeys })

describe('a store that the machines of a backend', () => {
  it.each([
    ['file:///srv/crucible', /a folder of this host/],
    ['s3://bucket?endpoint=http://127.0.0.1:9000', /at http:\/\/127.0.0.1:9000, on loopback/],
    ['s3://bucket?endpoint=http://localhost:9000', /on loopback/],
    ['s3://bucket?endpoint=http://[::1]:9000', /on loopback/],
  ])('cannot reach, %s, is an error for machines elsewhere only', (url, words) => {
    expect(problemOf(url)).toMatchObject({ severity: 'error', message: expect.stringMatching(words) })
    expect(problemOf(url, { ...REMOTE, isRemote: false })).toBeUndefined()
  })

  it('use with permanent keys is a warning, unless they have a role', () => {
    expect(problemOf(BUCKET, REMOTE, true)).toMatchObject({ severity: 'warning' })
    expect(problemOf(BUCKET, { ...REMOTE, needsGrants: false }, true)).toBeUndefined()
  })

  it.each([BUCKET, 's3://bucket?endpoint=https://minio.example.com', 's3://127.0.0.1/prefix'])(
    'can reach, %s, is none',
    (url) => expect(problemOf(url)).toBeUndefined(),
  )
})

describe('a backend whose machines cannot use the store', () => {
  const backendWith = (storeUrl: string, hasPermanentKeys = false): Backend =>
    withStoreReach(new ScriptedHarness({}).backend, problemOf(storeUrl, REMOTE, hasPermanentKeys))

  it('has no offers, and says why in its check', async () => {
    const backend = backendWith('file:///srv/crucible')
    await expect(backend.offers({}, patiently())).rejects.toMatchObject({ failure: { class: 'invalid' } })
    expect(await backend.check(patiently())).toMatchObject([{ severity: 'error' }])
  })

  it('buys nothing in advance, and shows and gives back what it has', async () => {
    const market = new ReservationMarket({ clock: new DrivenClock(0) })
    const reserving = createScriptedReserving(market)
    const backend = { ...new ScriptedHarness({}).backend, reserving }
    const { reserving: reached } = withStoreReach(backend, problemOf('file:///srv/crucible'))
    const wish = { backend: 'scripted', kind: 'hourly', types: ['any'], count: 1 } as const
    await expect(reached!.reservable(wish, patiently())).rejects.toMatchObject({
      failure: { class: 'invalid' },
    })
    expect(await reached!.reserve({} as ReservationOrder, patiently())).toMatchObject({ kind: 'refused' })
    expect(market.calls).toEqual([])
    market.hold({ kind: 'hourly', type: 'any', region: 'east', zone: 'east-a', total: 1 })
    expect(await reached!.reservations(patiently())).toHaveLength(1)
    const unharmed = discounted(withStoreReach(backend, problemOf(BUCKET, REMOTE, true)), 0.5)
    expect(unharmed.reserving).toBe(reserving)
  })

  it('has offers that say so where it only should not', async () => {
    const offers = await backendWith(BUCKET, true).offers({}, patiently())
    expect(offers.map(({ note }) => note)).toEqual(offers.map(() => expect.stringMatching(/never expire/)))
    expect(offers).not.toEqual([])
  })

  it('is what workers and plans use', async () => {
    const { backend, store } = new ScriptedHarness({})
    const read = { ...REMOTE, create: async () => backend, isNear: false }
    const config = { backends: new Map([['scripted', read]]), grants: {}, discounts: new Map() }
    const used = (url: string) => {
      const at = { store: Object.create(store, { url: { value: url } }) as ObjectStore, deployment: 'dep-1' }
      return makeBackend(config as unknown as WorkerConfig, 'scripted', at)
    }
    const unreachable = (await used('file:///srv/crucible')).offers({}, patiently())
    await expect(unreachable).rejects.toMatchObject({ failure: { class: 'invalid' } })
    expect(await (await used(BUCKET)).offers({}, patiently())).not.toEqual([])
  })

  it('is left as it is where all is well', () => {
    const { backend } = new ScriptedHarness({})
    expect(withStoreReach(backend, undefined)).toBe(backend)
  })
})

describe('machines of a provider', () => {
  const ec2 = (endpoint?: string): ReadSettings =>
    BACKENDS['ec2']!.read({ AWS_REGION: 'us-east-1', AWS_ENDPOINT_URL: endpoint })

  it('on loopback are on this host, others are elsewhere', () => {
    expect(ec2('http://127.0.0.1:4566')).toMatchObject({ isRemote: false })
    expect(ec2('https://ec2.example.com')).toMatchObject({ isRemote: true })
    expect(ec2()).toMatchObject({ isRemote: true })
    expect(BACKENDS['local']!.read({ CRUCIBLE_LOCAL_ROOT: '/tmp/x' })).toMatchObject({ isRemote: false })
    expect(isOnLoopback('no URL')).toBe(false)
  })
})
