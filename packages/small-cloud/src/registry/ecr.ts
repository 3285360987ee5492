/** ECR, limited to the calls for pulling images: a token for some hours. `registries.ts` checks the token. */
import { z } from 'zod'
import { action, type Service } from '../wire/service'
import type { World } from '../world/world'
import { TOKEN_USER, type RegistryTokens } from './tokens'

export function ecrService(world: World, tokens: RegistryTokens): Service {
  return {
    name: 'ecr',
    style: 'json',
    namespace: 'AmazonEC2ContainerRegistry_V20150921',
    actions: {
      GetAuthorizationToken: action({
        // The token also opens the registries of other accounts, if any.
        input: z.strictObject({
          registryIds: z
            .array(z.string().regex(/^\d{12}$/))
            .min(1)
            .max(10)
            .optional(),
        }),
        run({ registryIds = [world.account] }, { principal, region }) {
          const { password, expiresAtMs } = tokens.give(principal, region)
          return {
            authorizationData: registryIds.map((account) => ({
              authorizationToken: Buffer.from(`${TOKEN_USER}:${password}`).toString('base64'),
              expiresAt: expiresAtMs / 1000,
              proxyEndpoint: `https://${account}.dkr.ecr.${region}.amazonaws.com`,
            })),
          }
        },
      }),
    },
  }
}
