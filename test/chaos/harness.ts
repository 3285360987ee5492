import { harness, seeded, type Drawn, type Case } from '../kit/harness'
import { withProduct } from '../proof/product'
import { withServerOnly } from '../kit/server'
import { tally } from '../kit/table'
import { testServer } from '../support/temporal'
import { FAULTS, planOf, type Fault, type Plan } from './plan'
import { runChaos } from './run'
import type { Product } from './stage'

const OPTIONS = {
  only: { default: '', as: 'FAULT,...', means: `draws from these faults only: ${FAULTS.join(', ')}` },
  keep: { default: false, means: 'keeps the folder of every run, not only of the broken ones' },
}

export type ChaosCase = Case & { plan: Plan }

/** A deployment of real processes of the built product, which faults strike. */
export const CHAOS = harness({
  seeds: 20,
  jobs: 3,
  options: OPTIONS,
  stops: true,
  around: (_, use) => withProduct((product) => withServerOnly(() => use(product))),
  draw: ({ seeds, only }): ChaosCase[] => {
    const faults = faultsFrom(only)
    return seeded(seeds, (seed) => ({ plan: planOf(seed, faults) }))
  },
  live: ({ plan }: ChaosCase, product: Product, { keep, signal }: Drawn<typeof OPTIONS>) =>
    runChaos(plan, { product, executable: testServer().executable, isKept: keep, signal }),
  table: (reports) => [
    ...tally(reports.flatMap(({ ends }) => ends.map((end) => `jobs: ${end.split(' ')[0]!}`))),
    ...tally(reports.flatMap(({ landed }) => landed.map((fault) => `struck: ${fault}`))),
    ...tally(
      reports.flatMap(({ leftOut }) =>
        leftOut.map((fault) => `not struck without the right to mount: ${fault}`),
      ),
    ),
  ],
})

function faultsFrom(text: string): readonly Fault[] {
  const names = text === '' ? undefined : text.split(',')
  const unknown = names?.filter((name) => !FAULTS.some((fault) => fault === name)) ?? []
  if (unknown.length > 0)
    throw new Error(`There is no fault ${unknown.join(', ')}; there are ${FAULTS.join(', ')}.`)
  return (names as Fault[] | undefined) ?? FAULTS
}
