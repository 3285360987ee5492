/**
 * What the small cloud's Lambda answers and what the backend sends, judged by a client that others generated from Lambda's OpenAPI document.
 * Skipped without that client.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { afterEach, describe, expect, it, jest } from '@jest/globals'
import { MEANINGS } from '../../../backends/lambda/errors'
import { createLambdaSetup } from '../../../backends/lambda/setup'
import { pythonClients } from '../../support/python-clients'
import { patiently } from '../harness'
import { LambdaHarness } from './harness'

jest.setTimeout(120_000)

const bin = pythonClients('lambda-clients')

let harness: LambdaHarness | undefined
afterEach(async () => {
  await harness?.dispose()
  harness = undefined
})

/** Runs a program of the client's Python, which reads and prints JSON; the cloud lives in this process, so it must not block. */
async function python<T>(program: string, input: unknown): Promise<T> {
  const child = spawn(join(bin!, 'python3'), ['-B', join(__dirname, 'python', program)])
  const [stdout, stderr]: [string[], string[]] = [[], []]
  child.stdout.on('data', (chunk) => stdout.push(String(chunk)))
  child.stderr.on('data', (chunk) => stderr.push(String(chunk)))
  child.stdin.end(JSON.stringify(input))
  const [code] = (await once(child, 'close')) as [number | null]
  if (code !== 0) throw new Error(stderr.join(''))
  return JSON.parse(stdout.join('')) as T
}

;(bin === undefined ? describe.skip : describe)('by a client generated from the OpenAPI document', () => {
  it('every answer of the small cloud is read whole, and so is every error', async () => {
    harness = await LambdaHarness.make()
    const { endpoint, apiKey: key } = harness.config
    const { said, problems } = await python<{ said: object; problems: string[] }>('drive.py', {
      endpoint,
      key,
    })
    expect(problems).toEqual([])
    expect(said).toEqual({
      type: [11, 129, 1, ['us-east-1']],
      keys: ['crucible', 'generated', 'given'],
      private: true,
      'keys left': ['crucible', 'given'],
      disk: ['/lambda/nfs/cache', false],
      instance: ['made-by-another', 'made-by-another', 'us-east-1', 'gpu_1x_a10'],
      tags: { team: 'Judges' },
      mounts: ['/lambda/nfs/cache'],
      listed: [true],
      renamed: 'renamed',
      'in use': ['ApiErrorFilesystemInUse', 'filesystems/filesystem-in-use'],
      ending: ['terminating'],
      'listed after': 0,
      'deleted disks': [true],
      disks: 0,
      images: true,
      errors: {
        'wrong key': ['ApiErrorUnauthorized', 'global/invalid-api-key'],
        'no such instance': ['ApiErrorInstanceNotFound', 'global/object-does-not-exist'],
        'nothing to end': ['ApiErrorInstanceNotFound', 'global/object-does-not-exist'],
        'no capacity': ['ApiErrorInsufficientCapacity', 'instance-operations/launch/insufficient-capacity'],
        'no such key': ['ApiErrorLaunchResourceNotFound', 'global/object-does-not-exist'],
        'no such disk': ['ApiErrorLaunchResourceNotFound', 'global/object-does-not-exist'],
        'wrong parameters': ['ApiErrorInvalidParameters', 'global/invalid-parameters'],
        'same key twice': ['ApiErrorInvalidParameters', 'global/invalid-parameters'],
        'no such key to delete': ['ApiErrorInvalidParameters', 'global/invalid-parameters'],
      },
    })
  })

  it('every error code of the document has a meaning', async () => {
    const codes = await python<string[]>('codes.py', {})
    expect(codes.length).toBeGreaterThan(10)
    expect(codes.filter((code) => !(code in MEANINGS))).toEqual([])
  })

  it('finds what is wrong with a request', async () => {
    const launch = { region_name: 'us-east-1', instance_type_name: 'gpu_1x_a10', ssh_key_names: ['a'] }
    const found = await python<string[]>('judge.py', [
      { action: 'launch', body: { ...launch, region_name: 'mars-north-1' } },
      { action: 'launch', body: { ...launch, quantity: 1 } },
      { action: 'launch', body: { ...launch, tags: [{ key: 'only' }] } },
      { action: 'terminate', body: {} },
      { action: 'launch', body: launch },
    ])
    expect(found).toEqual([
      expect.stringContaining('mars-north-1'),
      'launch: .quantity is unknown to InstanceLaunchRequest',
      expect.stringContaining('value'),
      expect.stringContaining('instance_ids'),
    ])
  })

  it('every body that the backend and its set-up send is well formed', async () => {
    harness = await LambdaHarness.make({
      world: { lambda: { fileSystems: [{ name: 'cache', region: 'us-east-1' }] } },
    })
    const backend = await harness.reopen({ cache: 'cache' })
    harness.backend = backend
    const order = await harness.order()
    expect(order.offers[0]!.data).toEqual({ cache: 'cache' })
    const outcome = await backend.launch(order, { ...patiently(), send: `${order.attemptId}-s1` })
    if (outcome.kind !== 'launched') throw new Error(JSON.stringify(outcome))
    await backend.terminate(outcome.handle, patiently())
    const { endpoint, apiKey } = harness.config
    const setup = createLambdaSetup(
      { prefix: 'another' },
      { LAMBDA_API_KEY: apiKey, CRUCIBLE_LAMBDA_ENDPOINT: endpoint, CRUCIBLE_LAMBDA_REQUESTS: '100' },
    )
    await setup.apply({ ...patiently(), onStep: () => undefined })
    await setup.remove({ ...patiently(), hasData: false, onStep: () => undefined })
    const calls = harness.cloud.journal.calls({ service: 'lambda', isMutating: true })
    expect(calls.map(({ action, outcome: ended }) => [action, ended])).toEqual([
      ['launch', 'ok'],
      ['terminate', 'ok'],
      ['add-ssh-key', 'ok'],
      ['delete-ssh-key', 'ok'],
    ])
    const bodies = calls
      .filter(({ action }) => action !== 'delete-ssh-key')
      .map(({ action, parameters: body }) => ({ action, body }))
    expect(await python<string[]>('judge.py', bodies)).toEqual([])
  })
})
