import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import type { AccountSetup, Step } from '../../../backends/account'
import type { SshKey } from '../../../backends/lambda/api'
import { createLambdaSetup } from '../../../backends/lambda/setup'
import { testFolder } from '../../support/folders'
import { LambdaHarness } from './harness'

let h: LambdaHarness
beforeEach(async () => {
  h = await LambdaHarness.make({ world: { lambda: { sshKeys: [] } }, isOnPaper: true })
})
afterEach(() => h.dispose())

const setupOf = (prefix = 'crucible'): AccountSetup => {
  const { apiKey, endpoint } = h.config
  const settings = { LAMBDA_API_KEY: apiKey, CRUCIBLE_LAMBDA_ENDPOINT: endpoint }
  return createLambdaSetup(
    { prefix },
    { HOME: testFolder('home'), ...settings, CRUCIBLE_LAMBDA_REQUESTS: '100' },
  )
}
/** The keys of the account, by the API that Lambda publishes. */
async function sshKeys(method = 'GET', body?: object): Promise<SshKey[]> {
  const { apiKey, endpoint } = h.config
  const answer = await fetch(`${endpoint}/api/v1/ssh-keys`, {
    method,
    headers: { authorization: `Bearer ${apiKey}`, 'user-agent': 'test', 'content-type': 'application/json' },
    body: body && JSON.stringify(body),
  })
  return ((await answer.json()) as { data: SshKey[] }).data
}
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
    expect(await sshKeys()).toHaveLength(1)
    expect((await setup.removal(signal)).parts).toMatchObject([{ state: 'there' }])
    expect(done(await setup.remove(idle))).toEqual(['ssh-key crucible removed'])
    expect([await sshKeys(), await setup.remove(idle)]).toEqual([[], []])
    expect(done(told)).toEqual(['ssh-key crucible made', 'ssh-key crucible removed'])
  })

  it('sends and keeps the public half of the key only, and says which settings belong to it', async () => {
    const setup = setupOf('second')
    const steps = await setup.apply(idle)
    const [key] = await sshKeys()
    expect(key!.public_key).toMatch(
      /^ssh-ed25519 AAAAC3NzaC1lZDI1NTE5[A-Za-z0-9+/]{48}={0,2} made-by-crucible-setup$/,
    )
    const survey = await setup.survey(signal)
    expect(survey.settings).toEqual({ CRUCIBLE_BACKENDS: 'lambda', CRUCIBLE_LAMBDA_SSH_KEY: 'second' })
    const words = JSON.stringify([steps, survey, await setup.removal(signal), key])
    expect(words).not.toMatch(/PRIVATE KEY|private_key/)
    expect(words).not.toContain(h.config.apiKey)
    expect(survey.place.identity).toBe(`the key …${h.config.apiKey.slice(-4)}`)
  })

  it('makes another key each time', async () => {
    await setupOf('one').apply(idle)
    await setupOf('two').apply(idle)
    expect(new Set((await sshKeys()).map(({ public_key: text }) => text)).size).toBe(2)
  })

  it('uses a key that others made unchanged, and does not remove it', async () => {
    await sshKeys('POST', { name: 'crucible', public_key: 'ssh-ed25519 AAAA a@laptop' })
    const setup = setupOf()
    expect(await states(setup)).toEqual(['ssh-key theirs'])
    expect(await setup.apply(idle)).toEqual([])
    expect(await setup.removal(signal)).toMatchObject({ parts: [], obstacles: [] })
    expect(await setup.remove(idle)).toEqual([])
    expect(await sshKeys()).toHaveLength(1)
    expect(h.cloud.journal.calls({ isMutating: true }).map(({ action }) => action)).toEqual(['add-ssh-key'])
  })

  it('removes no key while machines were launched with it', async () => {
    const setup = setupOf()
    await setup.apply(idle)
    await h.fill()
    const { obstacles } = await setup.removal(signal)
    expect(obstacles).toMatchObject([{ remedy: expect.stringContaining('crucible gc') }])
  })

  it('says why a step failed, and stops where the key of the account is wrong', async () => {
    expect(await setupOf('x'.repeat(65)).apply(idle)).toMatchObject([
      { did: 'failed', reason: expect.stringMatching(/^Lambda answered 400: name: /) },
    ])
    await h.breakDown()
    await expect(setupOf().survey(signal)).rejects.toMatchObject({ failure: { class: 'auth' } })
    expect(() => createLambdaSetup({ prefix: 'crucible' }, { HOME: testFolder('home') })).toThrow(
      /LAMBDA_API_KEY is missing/,
    )
  })
})
