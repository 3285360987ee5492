import { beforeEach, describe, expect, it } from '@jest/globals'
import type { AccountSetup, Step } from '../../../backends/account'
import { createLambdaSetup } from '../../../backends/lambda/setup'
import { testFolder } from '../../support/folders'
import { FakeLambda, refusal } from './fake-api'

const KEY = 'secret_small_0123456789_wxyz'

let lambda: FakeLambda
beforeEach(() => {
  lambda = new FakeLambda()
  lambda.sshKeys = []
})

const setupOf = (prefix = 'crucible'): AccountSetup =>
  createLambdaSetup({ prefix }, { HOME: testFolder('home'), LAMBDA_API_KEY: KEY }, lambda.open)
const { signal } = new AbortController()
const told: Step[] = []
const idle = { signal, hasData: false, onStep: (step: Step) => void told.push(step) }
const done = (steps: Step[]): string[] => steps.map(({ part, did }) => `${part.id} ${part.name} ${did}`)
const states = async (setup: AccountSetup): Promise<string[]> =>
  (await setup.survey(signal)).parts.map(({ id, state }) => `${id} ${state}`)

describe('the set-up of a Lambda account', () => {
  it('makes the SSH key once, and removes it again', async () => {
    const setup = setupOf()
    expect(await states(setup)).toEqual(['ssh-key missing'])
    expect(done(await setup.apply(idle))).toEqual(['ssh-key crucible made'])
    expect(await states(setup)).toEqual(['ssh-key there'])
    expect(await setup.apply(idle)).toEqual([])
    expect(lambda.sshKeys).toHaveLength(1)
    expect((await setup.removal(signal)).parts).toMatchObject([{ state: 'there' }])
    expect(done(await setup.remove(idle))).toEqual(['ssh-key crucible removed'])
    expect([lambda.sshKeys, await setup.remove(idle)]).toEqual([[], []])
    expect(done(told)).toEqual(['ssh-key crucible made', 'ssh-key crucible removed'])
  })

  it('sends and keeps the public half of the key only, and says which settings belong to it', async () => {
    const setup = setupOf('second')
    const steps = await setup.apply(idle)
    const [key] = lambda.sshKeys
    expect(key!.public_key).toMatch(
      /^ssh-ed25519 AAAAC3NzaC1lZDI1NTE5[A-Za-z0-9+/]{48}={0,2} made-by-crucible-setup$/,
    )
    const survey = await setup.survey(signal)
    expect(survey.settings).toEqual({ CRUCIBLE_BACKENDS: 'lambda', CRUCIBLE_LAMBDA_SSH_KEY: 'second' })
    const words = JSON.stringify([steps, survey, await setup.removal(signal), lambda.sshKeys])
    expect(words).not.toMatch(/PRIVATE KEY|private_key/)
    expect(words).not.toContain(KEY)
    expect(survey.place.identity).toBe('the key …wxyz')
  })

  it('makes another key each time', async () => {
    await setupOf('one').apply(idle)
    await setupOf('two').apply(idle)
    expect(new Set(lambda.sshKeys.map(({ public_key: text }) => text)).size).toBe(2)
  })

  it('uses a key that others made unchanged, and does not remove it', async () => {
    lambda.sshKeys = [{ id: 'key-9', name: 'crucible', public_key: 'ssh-ed25519 AAAA a@laptop' }]
    const setup = setupOf()
    expect(await states(setup)).toEqual(['ssh-key theirs'])
    expect(await setup.apply(idle)).toEqual([])
    expect(await setup.removal(signal)).toMatchObject({ parts: [], obstacles: [] })
    expect(await setup.remove(idle)).toEqual([])
    expect(lambda.sshKeys).toHaveLength(1)
    expect(lambda.calls.filter((name) => /add|delete/.test(name))).toEqual([])
  })

  it('removes no key while machines were launched with it', async () => {
    const setup = setupOf()
    await setup.apply(idle)
    const machine = lambda.launch({
      ...{ region_name: 'us-east-1', instance_type_name: 'gpu_1x_a10', ssh_key_names: ['crucible'] },
      ...{ name: 'a', hostname: 'a', user_data: '', tags: [], file_system_names: [] },
    })
    Object.assign(machine, { ssh_key_names: ['crucible'] })
    const { obstacles } = await setup.removal(signal)
    expect(obstacles).toMatchObject([{ remedy: expect.stringContaining('crucible gc') }])
  })

  it('says why a step failed, and stops where the key of the account is wrong', async () => {
    lambda.failNext('add-ssh-key', refusal(400, 'global/invalid-parameters', 'name: is too long'))
    expect(await setupOf().apply(idle)).toMatchObject([
      { did: 'failed', reason: 'Lambda answered 400: name: is too long' },
    ])
    lambda.failNext('ssh-keys', refusal(401, 'global/invalid-api-key'))
    await expect(setupOf().survey(signal)).rejects.toMatchObject({ failure: { class: 'auth' } })
    expect(() =>
      createLambdaSetup({ prefix: 'crucible' }, { HOME: testFolder('home') }, lambda.open),
    ).toThrow(/LAMBDA_API_KEY is missing/)
  })
})
