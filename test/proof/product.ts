import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { Product } from '../chaos/stage'

/** With a copy of the product as it is now, built. */
export async function withProduct<R>(use: (product: Product) => Promise<R>): Promise<R> {
  execFileSync(process.execPath, [join(__dirname, '..', '..', 'tools', 'build.mjs')], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const product = new Product()
  try {
    return await use(product)
  } finally {
    product.remove()
  }
}
