import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { planHere } from '../../service/plan'
import { SPEC } from '../support/spec'

describe('a plan made without a worker', () => {
  let home: string
  beforeAll(async () => {
    home = await mkdtemp(join(tmpdir(), 'plan-here-'))
  })
  afterAll(() => rm(home, { recursive: true }))

  it('says what a backend that the job does not allow would gain, as workers say it', async () => {
    // Nothing listens at this endpoint.
    const environment = {
      CRUCIBLE_HOME: home,
      CRUCIBLE_BACKENDS: 'local,lambda',
      LAMBDA_API_KEY: 'key',
      CRUCIBLE_LAMBDA_ENDPOINT: 'http://127.0.0.1:9',
    }
    const plan = await planHere(environment, { ...SPEC, backends: [{ backend: 'lambda' }] })
    expect(plan.placements).toEqual([])
    expect(plan.silentBackends).toMatchObject([{ backend: 'lambda' }])
    expect(plan.relaxations).toMatchObject([{ wish: 'backend', change: expect.stringContaining('local') }])
  })
})
