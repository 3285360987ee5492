import { existsSync, readdirSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { FakeCheckout } from './fake-checkout'

let checkout: FakeCheckout

beforeEach(() => {
  checkout = new FakeCheckout()
})

afterEach(() => {
  checkout.remove()
})

/** Of the quick commands: whether there is a bundle, and for which versions of Node it was compiled. */
function quick(): [boolean, string[]] {
  const caches = readdirSync(checkout.path('dist/cli')).flatMap(
    (name) => /(v[\d.]+)-.*\.cache$/.exec(name)?.[1] ?? [],
  )
  return [existsSync(checkout.path('dist/cli/quick-commands.js')), caches]
}

describe('build', () => {
  it('bundles the quick commands again when their code changes or another Node will run them', async () => {
    await checkout.node('tools/setup.mjs')
    expect(quick()).toEqual([true, [process.version]])
    checkout.write('cli/dev/temporal/progress.ts', 'exports.progressOn = () => undefined')
    expect(await checkout.node('tools/build.mjs')).toMatchObject({
      stderr: 'Building: code\nBuilding: quick commands\n',
    })
    const [name] = readdirSync(checkout.path('dist/cli')).filter((file) => file.endsWith('.cache'))
    const other = name!.replace(process.version, 'v1.0.0')
    await checkout.run('/bin/mv', [`dist/cli/${name}`, `dist/cli/${other}`])
    expect(await checkout.node('tools/build.mjs')).toMatchObject({ stderr: 'Building: quick commands\n' })
    expect(quick()).toEqual([true, [process.version]])
  })

  it('leaves no bundle that is older than the code that it is made of', async () => {
    await checkout.node('tools/setup.mjs')
    checkout.write('core/time.ts', 'BROKEN')
    expect(await checkout.node('tools/build.mjs')).toMatchObject({ code: 1 })
    expect(quick()).toEqual([false, []])
    checkout.write('core/time.ts', '// fixed')
    await checkout.node('tools/build.mjs')
    expect(quick()).toEqual([true, [process.version]])
  })
})
