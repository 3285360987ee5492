import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals'
import type { AccountSetup, Step } from '../../../backends/account'
import { createModalBackend } from '../../../backends/modal'
import { parseModalConfig } from '../../../backends/modal/config'
import { createModalSetup } from '../../../backends/modal/setup'
import { testFolder } from '../../support/folders'
import { patient } from '../../support/patience'
import { pythonClients } from '../../support/python-clients'
import { patiently } from '../harness'
import { openRealGateway, type Gateway } from './gateways'
import { HEALTH, ModalHarness } from './harness'

jest.setTimeout(patient(60_000))

const { signal } = patiently()
const idle = { signal, onStep: () => undefined }
const statesOf = async (setup: AccountSetup): Promise<string[]> =>
  (await setup.survey(signal)).parts.map(({ id, state }) => `${id}: ${state}`)

/** A folder that hides modules from Python: users have Modal's client and nothing else of the gateway's. */
function withoutModules(...names: string[]): string {
  const folder = testFolder('hidden')
  for (const name of names)
    writeFileSync(join(folder, `${name}.py`), `raise ModuleNotFoundError("No module named '${name}'")\n`)
  return folder
}

/** With Modal's own client, to a control plane of the tests. */
function setUpAWorkspace(): void {
  let gateway: Gateway
  let home: string
  let environment: Record<string, string | undefined>

  beforeAll(async () => {
    gateway = await openRealGateway!({ modal: { secrets: { 'hub-login': {} } } })
  })
  afterAll(() => gateway.close())
  beforeEach(() => {
    home = testFolder('home')
    environment = {
      PATH: process.env['PATH'],
      HOME: home,
      CRUCIBLE_HOME: home,
      MODAL_SERVER_URL: gateway.modal,
      MODAL_TOKEN_ID: 'ak-test',
      MODAL_TOKEN_SECRET: 'as-test',
      PYTHONPATH: withoutModules('fastapi', 'pydantic'),
      CRUCIBLE_GATEWAY_SECRETS: 'hub-login',
      CRUCIBLE_MODAL_PYTHON: join(pythonClients('modal-clients')!, 'python3'),
    }
  })
  const setupOf = (changes: Record<string, string> = {}, prefix = 'crucible'): AccountSetup =>
    createModalSetup({ prefix }, { ...environment, ...changes })

  it('deploys the gateway, keeps its token for the user only, and removes both', async () => {
    const setup = setupOf()
    expect(await statesOf(setup)).toEqual(['gateway: missing', 'token: missing'])
    const steps = await setup.apply(idle)
    expect(steps.map(({ part, did }) => `${part.id}: ${did}`)).toEqual(['gateway: made', 'token: made'])
    expect(await statesOf(setup)).toEqual(['gateway: there', 'token: there'])
    expect(await setup.apply(idle)).toEqual([])
    const file = join(home, 'modal.json')
    expect(statSync(file).mode & 0o777).toBe(0o600)
    const { secret } = JSON.parse(readFileSync(file, 'utf8')) as { secret: string }
    expect(JSON.stringify([steps, await setup.survey(signal)])).not.toContain(secret)

    const parsed = parseModalConfig(environment)
    if ('problems' in parsed) throw new Error(parsed.problems.join())
    const backend = await createModalBackend(parsed.config, { clock: Date.now })
    expect(await backend.check({ signal })).toEqual([])

    const removed = await setup.remove({ ...idle, hasData: false })
    expect(removed.map(({ part, did }) => `${part.id}: ${did}`)).toEqual([
      'gateway: removed',
      'token: removed',
    ])
    expect(existsSync(file)).toBe(false)
    expect(await statesOf(setup)).toEqual(['gateway: missing', 'token: missing'])
    expect(await backend.check({ signal })).toMatchObject([
      { severity: 'error', failure: 'auth', message: expect.stringContaining('proxy token') },
    ])
  })

  it("deploys Functions that need the token and have limits, with the rates that the user's own credentials can read", async () => {
    await setupOf({}, 'other').apply(idle)
    const created = gateway.cloud.journal.calls({ service: 'modal', action: 'FunctionCreate' })
    const functions = created.map(({ parameters }) => parameters as { name: string })
    expect(functions.findLast(({ name }) => name === 'web')).toMatchObject({
      needsProxyToken: true,
      label: 'other-gateway',
      containersMax: 2,
      timeoutSeconds: 60,
    })
    // Modal schedules a Sandbox with a GPU within 21 minutes.
    const launcher = functions.findLast(({ name }) => name === 'launch_job') as unknown as Record<
      string,
      number
    >
    expect(launcher).toMatchObject({ needsProxyToken: false, containersMax: 8, inputsMax: 50 })
    expect(launcher['timeoutSeconds']).toBeGreaterThan(21 * 60)
    const built = gateway.cloud.journal.calls({ service: 'modal', action: 'ImageJoinStreaming' })
    const { dockerfile } = built.at(-1)!.parameters as { dockerfile: string }
    expect(dockerfile).toMatch(/CRUCIBLE_GATEWAY_RATES=.*gpu_hour_cost_h100/)
  })

  it('replaces a token whose secret is lost', async () => {
    await setupOf({}, 'again').apply(idle)
    const elsewhere = testFolder('elsewhere')
    const setup = setupOf({ CRUCIBLE_HOME: elsewhere }, 'again')
    expect(await statesOf(setup)).toEqual(['gateway: there', 'token: missing'])
    await setup.apply(idle)
    expect(await statesOf(setup)).toEqual(['gateway: there', 'token: there'])
    expect(await statesOf(setupOf({}, 'again'))).toEqual(['gateway: there', 'token: missing'])
  })

  it('says what to do about credentials that Modal refuses', async () => {
    await expect(setupOf({ MODAL_TOKEN_SECRET: 'as-foreign' }).survey(signal)).rejects.toMatchObject({
      failure: { class: 'auth', hint: expect.stringContaining('modal setup') },
    })
  })

  it('reports a step that failed, and continues there the next time', async () => {
    const asked: string[][] = []
    const setup = createModalSetup({ prefix: 'half' }, environment, {
      manage: async (command) => {
        asked.push(command)
        if (command[0] === 'deploy') throw new Error('the network is down')
        return { workspace: 'w', environment: 'main', sdk: '1.6.4', url: null, tokens: [] }
      },
    })
    const steps: Step[] = await setup.apply(idle)
    expect(steps).toMatchObject([{ part: { id: 'gateway' }, did: 'failed', reason: 'the network is down' }])
    expect(asked.map(([name]) => name)).toEqual(['survey', 'deploy'])
  })
}

describe('crucible setup modal, of a gateway that answers strangely', () => {
  let h: ModalHarness
  beforeEach(async () => {
    h = await ModalHarness.make({ isOnPaper: true })
  })
  afterEach(() => h.dispose())

  async function setupWith(
    settings: Record<string, string> = {},
    token = h.config.token,
  ): Promise<{ setup: AccountSetup; commands: string[] }> {
    const home = testFolder('home')
    const { url } = h.config
    writeFileSync(join(home, 'modal.json'), JSON.stringify({ url, ...token }))
    const commands: string[] = []
    const setup = createModalSetup(
      { prefix: 'crucible' },
      { CRUCIBLE_HOME: home, ...settings },
      {
        manage: async ([command]) => {
          commands.push(command!)
          const surveyed = { workspace: 'w', environment: 'main', sdk: '1.6.4', url, tokens: [token.key] }
          return { ...surveyed, key: 'wk-new', secret: 'ws-new' }
        },
      },
    )
    return { setup, commands }
  }

  it('makes another token if Modal refuses the stored one, and leaves the gateway alone', async () => {
    const { setup, commands } = await setupWith({}, { key: 'wk-0123456789', secret: 'ws-lost' })
    expect(await statesOf(setup)).toEqual(['gateway: there', 'token: missing'])
    await setup.apply(idle)
    expect(commands.slice(2)).toEqual(['create-token', 'delete-token'])
  })

  it('does not replace a newer gateway, and says what to do', async () => {
    h.answerHealth({ api: 2 })
    const { setup, commands } = await setupWith()
    const [gateway] = (await setup.survey(signal)).parts
    expect(gateway).toMatchObject({
      state: 'there',
      remarks: [expect.stringMatching(/version 2.*Update Crucible/)],
    })
    expect(await setup.apply(idle)).toEqual([])
    expect(commands).toEqual(['survey', 'survey'])
  })

  it.each([
    ['CRUCIBLE_GATEWAY_REGISTRIES', 'docker.io, registry.example', 'registry.example'],
    ['CRUCIBLE_GATEWAY_SECRETS', 'hub-login', 'hub-login'],
    ['CRUCIBLE_MODAL_IMAGE_SECRETS', 'ghcr.io=robot', 'robot'],
  ])('deploys over a gateway that does not allow what %s names', async (name, value, missing) => {
    const { setup, commands } = await setupWith({ [name]: value })
    const [gateway] = (await setup.survey(signal)).parts
    expect(gateway).toMatchObject({
      state: 'differs',
      remarks: [expect.stringContaining(`does not allow ${missing} yet`)],
    })
    expect(await setup.apply(idle)).toMatchObject([{ did: 'mended', part: { id: 'gateway' } }])
    expect(commands.slice(2)).toEqual(['deploy'])
    h.answerHealth({ allowed: { ...HEALTH.allowed, registries: ['docker.io', missing], secrets: [missing] } })
    expect(await statesOf(setup)).toEqual(['gateway: there', 'token: there'])
  })

  it('deploys over an older gateway', async () => {
    h.answerHealth({ api: 0 })
    const { setup, commands } = await setupWith()
    expect(await statesOf(setup)).toEqual(['gateway: differs', 'token: there'])
    expect(await setup.apply(idle)).toMatchObject([{ did: 'mended', part: { id: 'gateway' } }])
    expect(commands.slice(2)).toEqual(['deploy'])
  })
})

describe('crucible setup modal, where Python has no modal', () => {
  it('says how to get it', async () => {
    const environment = {
      PATH: process.env['PATH'],
      HOME: testFolder('home'),
      CRUCIBLE_MODAL_PYTHON: '/nonexistent/python',
    }
    await expect(createModalSetup({ prefix: 'crucible' }, environment).survey(signal)).rejects.toMatchObject({
      failure: { class: 'invalid', hint: expect.stringContaining('pip install') },
    })
  })
})

describe("crucible setup modal, with another version of Modal's client", () => {
  const surveyWith = (version: string, isNew: boolean): Promise<unknown> => {
    const folder = testFolder('client')
    const workspace =
      'class Workspace:\n  from_context = staticmethod(lambda: (_ for _ in ()).throw(OSError("asked")))\n'
    writeFileSync(join(folder, 'modal.py'), `__version__ = '${version}'\n${isNew ? workspace : ''}`)
    const environment = { PATH: process.env['PATH'], HOME: folder, PYTHONPATH: folder }
    return createModalSetup({ prefix: 'crucible' }, environment).survey(signal)
  }

  it.each(['0.73.1', '1.4.3', '1.5.9.dev2'])(
    'says that %s is too old, and how to get a newer one',
    async (version) => {
      await expect(surveyWith(version, false)).rejects.toMatchObject({
        failure: {
          class: 'invalid',
          message: `python3 has modal ${version}, but set-up needs 1.6 or newer`,
          hint: expect.stringContaining('pip install "modal>=1.6'),
        },
      })
    },
  )

  it.each(['1.6.4', '1.10.0', '2.0.0rc1'])('takes %s', async (version) => {
    await expect(surveyWith(version, true)).rejects.toMatchObject({
      message: expect.stringContaining('asked'),
    })
  })
})

if (openRealGateway === undefined)
  describe.skip("crucible setup modal, with Modal's client", () => it('sets up a workspace', () => undefined))
else describe("crucible setup modal, with Modal's client", setUpAWorkspace)
