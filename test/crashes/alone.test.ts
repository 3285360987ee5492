/** `crucible gc --alone` whose process dies in any of its calls. */
import { describe, expect, it } from '@jest/globals'
import { MINUTE_MS } from '../../core/time/time'
import type { ProviderName } from '../clouds/provider'
import { PROVIDER_NAMES, PROVIDERS } from '../clouds/providers'
import { inLanes } from '../kit/lanes'
import { itInAll } from '../support/selection'
import { deathsAlone, dieAlone, type AloneDeath } from './alone'

/** The call that ends a machine. */
const ENDING: Record<ProviderName, string> = {
  ec2: 'gc: TerminateInstances',
  lambda: 'gc: terminate',
  modal: 'gc: cancel',
}
const JOBS = 8

describe.each(PROVIDER_NAMES)('a collection without a server at %s that dies', (name) => {
  const provider = PROVIDERS[name]

  it('while it ends a machine leaves nothing that the next one does not end', async () => {
    const death: AloneDeath = { call: ENDING[name], occurrence: 1, moment: 'before' }
    expect(await dieAlone(provider, death)).toEqual({ deaths: 1, left: [], killed: [] })
  })

  itInAll(
    'in any of its calls leaves nothing that the next one does not end',
    async () => {
      const deaths = await deathsAlone(provider)
      expect(deaths.map(({ call }) => call)).toContain(ENDING[name])
      const reports = await inLanes(deaths, { jobs: JOBS }, async (death) => ({
        ...death,
        ...(await dieAlone(provider, death)),
      }))
      expect(reports).toEqual(deaths.map((death) => ({ ...death, deaths: 1, left: [], killed: [] })))
    },
    10 * MINUTE_MS,
  )
})
