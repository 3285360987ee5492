// Stands in for Terraform's provider of AWS where that cannot be had: it serves the real one's schema (schema.json) and plans what
// `terraform plan` asks for, so that a configuration is held to its resources, arguments, types and what is required. It reaches no
// cloud and applies nothing, and what the real provider checks beyond its schema it does not check.
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"log"

	"github.com/hashicorp/terraform-plugin-go/tfprotov5"
	"github.com/hashicorp/terraform-plugin-go/tfprotov5/tf5server"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

const source = "registry.terraform.io/hashicorp/aws"

//go:embed schema.json
var document []byte

// As `terraform providers schema -json` writes them.
type (
	schema struct {
		Version int64 `json:"version"`
		Block   block `json:"block"`
	}
	block struct {
		Attributes map[string]attribute `json:"attributes"`
		BlockTypes map[string]blockType `json:"block_types"`
	}
	attribute struct {
		Type     json.RawMessage `json:"type"`
		Required bool            `json:"required"`
		Optional bool            `json:"optional"`
		Computed bool            `json:"computed"`
	}
	blockType struct {
		NestingMode string `json:"nesting_mode"`
		Block       block  `json:"block"`
		MinItems    int64  `json:"min_items"`
		MaxItems    int64  `json:"max_items"`
	}
)

var nesting = map[string]tfprotov5.SchemaNestedBlockNestingMode{
	"single": tfprotov5.SchemaNestedBlockNestingModeSingle,
	"list":   tfprotov5.SchemaNestedBlockNestingModeList,
	"set":    tfprotov5.SchemaNestedBlockNestingModeSet,
}

func (s schema) served() *tfprotov5.Schema {
	return &tfprotov5.Schema{Version: s.Version, Block: s.Block.served()}
}

func (b block) served() *tfprotov5.SchemaBlock {
	served := &tfprotov5.SchemaBlock{}
	for name, each := range b.Attributes {
		kind, err := tftypes.ParseJSONType(each.Type)
		if err != nil {
			log.Fatalf("schema.json: %s: %v", name, err)
		}
		served.Attributes = append(served.Attributes, &tfprotov5.SchemaAttribute{
			Name: name, Type: kind, Required: each.Required, Optional: each.Optional, Computed: each.Computed,
		})
	}
	for name, each := range b.BlockTypes {
		served.BlockTypes = append(served.BlockTypes, &tfprotov5.SchemaNestedBlock{
			TypeName: name, Nesting: nesting[each.NestingMode], Block: each.Block.served(),
			MinItems: each.MinItems, MaxItems: each.MaxItems,
		})
	}
	return served
}

// Answers what validate and plan ask of a configuration that was never applied, and ends at anything else.
type provider struct {
	tfprotov5.ProviderServer
	schema    *tfprotov5.Schema
	resources map[string]*tfprotov5.Schema
	data      map[string]*tfprotov5.Schema
}

func (p *provider) GetProviderSchema(context.Context, *tfprotov5.GetProviderSchemaRequest) (*tfprotov5.GetProviderSchemaResponse, error) {
	return &tfprotov5.GetProviderSchemaResponse{Provider: p.schema, ResourceSchemas: p.resources, DataSourceSchemas: p.data}, nil
}

func (p *provider) GetResourceIdentitySchemas(context.Context, *tfprotov5.GetResourceIdentitySchemasRequest) (*tfprotov5.GetResourceIdentitySchemasResponse, error) {
	return &tfprotov5.GetResourceIdentitySchemasResponse{}, nil
}

func (p *provider) PrepareProviderConfig(_ context.Context, asked *tfprotov5.PrepareProviderConfigRequest) (*tfprotov5.PrepareProviderConfigResponse, error) {
	return &tfprotov5.PrepareProviderConfigResponse{PreparedConfig: asked.Config}, nil
}

func (p *provider) ConfigureProvider(context.Context, *tfprotov5.ConfigureProviderRequest) (*tfprotov5.ConfigureProviderResponse, error) {
	return &tfprotov5.ConfigureProviderResponse{}, nil
}

func (p *provider) ValidateResourceTypeConfig(context.Context, *tfprotov5.ValidateResourceTypeConfigRequest) (*tfprotov5.ValidateResourceTypeConfigResponse, error) {
	return &tfprotov5.ValidateResourceTypeConfigResponse{}, nil
}

func (p *provider) ValidateDataSourceConfig(context.Context, *tfprotov5.ValidateDataSourceConfigRequest) (*tfprotov5.ValidateDataSourceConfigResponse, error) {
	return &tfprotov5.ValidateDataSourceConfigResponse{}, nil
}

func (p *provider) StopProvider(context.Context, *tfprotov5.StopProviderRequest) (*tfprotov5.StopProviderResponse, error) {
	return &tfprotov5.StopProviderResponse{}, nil
}

// PlanResourceChange plans a resource that is not there yet: what is computed and not said is known after it is made.
func (p *provider) PlanResourceChange(_ context.Context, asked *tfprotov5.PlanResourceChangeRequest) (*tfprotov5.PlanResourceChangeResponse, error) {
	resource := p.resources[asked.TypeName]
	kind := resource.ValueType()
	proposed, err := asked.ProposedNewState.Unmarshal(kind)
	if err != nil {
		return nil, err
	}
	values := map[string]tftypes.Value{}
	if err := proposed.As(&values); err != nil {
		return nil, err
	}
	for _, each := range resource.Block.Attributes {
		if each.Computed && values[each.Name].IsNull() {
			values[each.Name] = tftypes.NewValue(each.Type, tftypes.UnknownValue)
		}
	}
	planned, err := tfprotov5.NewDynamicValue(kind, tftypes.NewValue(kind, values))
	return &tfprotov5.PlanResourceChangeResponse{PlannedState: &planned}, err
}

func main() {
	var all struct {
		Providers map[string]struct {
			Provider  schema            `json:"provider"`
			Resources map[string]schema `json:"resource_schemas"`
			Data      map[string]schema `json:"data_source_schemas"`
		} `json:"provider_schemas"`
	}
	if err := json.Unmarshal(document, &all); err != nil {
		log.Fatalf("schema.json: %v", err)
	}
	facts := all.Providers[source]
	served := &provider{schema: facts.Provider.served(), resources: map[string]*tfprotov5.Schema{}, data: map[string]*tfprotov5.Schema{}}
	for name, each := range facts.Resources {
		served.resources[name] = each.served()
	}
	for name, each := range facts.Data {
		served.data[name] = each.served()
	}
	if err := tf5server.Serve(source, func() tfprotov5.ProviderServer { return served }); err != nil {
		log.Fatal(err)
	}
}
