import type { Product } from '../chaos/stage'
import { harness, type Case, type Drawn } from '../kit/harness'
import { withServerOnly } from '../kit/server'
import { withProduct } from '../proof/product'
import { testServer } from '../support/temporal'
import { OUTAGES, runDates, type Outage } from './run'

const OPTIONS = {
  keep: { default: false, means: 'keeps the folder of every run, not only of the broken ones' },
}

export type DateCase = Case & { outage: Outage }

/** A schedule of a deployment of real processes. A part of it is away at the moment of a run. */
export const DATES = harness({
  jobs: 1,
  options: OPTIONS,
  around: (_, use) => withProduct((product) => withServerOnly(() => use(product))),
  draw: () =>
    Object.entries(OUTAGES).map(([name, outage]) => ({
      name,
      again: ['--only', name],
      outage,
    })) as DateCase[],
  live: ({ outage }: DateCase, product: Product, { keep }: Drawn<typeof OPTIONS>) =>
    runDates(outage, { product, executable: testServer().executable, isKept: keep }),
})
