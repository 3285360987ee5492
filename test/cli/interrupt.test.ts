import { afterEach, beforeEach, expect, it, jest } from '@jest/globals'
import { Context } from '../../client/context'
import { CrucibleError } from '../../client/errors'
import type { CapacityType } from '../../core/offer'
import { layout } from '../../storage/layout'
import { noteSubmission } from '../../storage/submissions'
import { ClientWorld, JOB, machineOf, NOW } from '../client/world'
import { STORE_OWNER } from '../support/marked-store'
import { World } from './outside'

let world: ClientWorld
let cli: World

beforeEach(async () => {
  world = await ClientWorld.make()
  cli = new World()
  cli.environment['CRUCIBLE_STORE'] = world.context.config.home.storeUrl
  jest.spyOn(Context.prototype, 'temporal').mockRejectedValue(new CrucibleError('unavailable', 'away'))
  await world.submitted({ deployment: STORE_OWNER })
  await noteSubmission(world.store, { jobId: JOB, submittedAtMs: NOW })
  await world.planned(1)
  await world.record('launched', {}, 1)
  await world.beat(1)
})
afterEach(async () => {
  // A command that waits ends here, and does not hold up the file.
  cli.signals.emit('SIGINT')
  jest.restoreAllMocks()
  cli.remove()
  await world.remove()
})

it.each<CapacityType>(['on-demand', 'reserved'])(
  'crucible interrupt refuses a machine that its provider never takes back: %s',
  async (capacityType) => {
    const machine = machineOf(1)
    const realised = { ...machine.realised, capacityType }
    await world.store.put(layout.machine(JOB, 1), JSON.stringify({ ...machine, realised }))
    expect(await cli.run('interrupt', JOB, '--without-notice')).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining(`is ${capacityType}, and only spot machines can be interrupted`),
    })
  },
)
