import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it, jest } from '@jest/globals'
import { readWorkerConfig } from '../../service/config'
import { createLogger } from '../../workers/logging'
import type * as run from '../../workers/run'
import { makeMarkedFolder } from '../support/marked-store'

const made: string[] = []
const closed: string[] = []
const REFUSAL = new Error('the server belongs to another deployment')

jest.mock('../../workers/connect', () => ({
  connect: async () => ({ close: async () => void closed.push('connection') }),
  untilAnswered: (ask: () => Promise<unknown>) => ask(),
}))
jest.mock('../../workers/authentication', () => ({
  Authentication: class {
    client = (): object => ({})
  },
}))
jest.mock('../../service/deployment', () => ({
  ...jest.requireActual<object>('../../service/deployment'),
  ensureSearchAttributes: async () => undefined,
}))
jest.mock('../../workers/same-deployment', () => ({ checkSameDeployment: () => Promise.reject(REFUSAL) }))
jest.mock('../../workers/orchestrator', () => ({
  createOrchestrator: async () => {
    made.push('orchestrator')
    throw new Error('made')
  },
}))

let home: string
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'crucible-run-workers-'))
  makeMarkedFolder(join(home, 'store'))
})
afterEach(() => rmSync(home, { recursive: true }))

it('no worker starts with the server of another deployment, and the connection is closed', async () => {
  const { runWorkers } = jest.requireActual<typeof run>('../../workers/run')
  const config = readWorkerConfig({ CRUCIBLE_HOME: home, TEMPORAL_ADDRESS: 'localhost:1' })
  const { signal } = new AbortController()
  const running = runWorkers({
    config,
    roles: ['orchestrator'],
    logger: createLogger({ level: 'error', isPretty: false }),
    signal,
  })
  await expect(running).rejects.toBe(REFUSAL)
  expect([made, closed]).toEqual([[], ['connection']])
})
