#include "placement/report.h"

namespace epona {
namespace {

// Layers by longest path from the inputs, nodes side by side; nothing is fetched from anywhere. The hash of the address
// sets the filters (#text=Conv&provider=CPUExecutionProvider&reasons=1), so that a view can be linked to.
constexpr const char* kHead = R"html(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Placement</title><style>
body{font:14px system-ui,sans-serif;margin:0;color:#222}
header{padding:12px 16px;border-bottom:1px solid #ccc;position:sticky;top:0;background:#fff;z-index:2}
h1{font-size:18px;margin:0 0 8px}
.legend span{display:inline-block;margin-right:16px}.legend i{display:inline-block;width:12px;height:12px;margin-right:5px;border:1px solid #0004}
input[type=text]{width:22em;padding:4px}label{margin-right:12px}
.warn{background:#fff3cd;padding:6px 10px;margin:6px 0;border-left:4px solid #e0a800}
#canvas{overflow:auto;height:62vh;border-bottom:1px solid #ccc}
.node rect{stroke:#0006;rx:4}.node text{font-size:11px;pointer-events:none}.node.off{opacity:.12}.node.sel rect{stroke:#000;stroke-width:2.5}
path.edge{fill:none;stroke:#999;stroke-width:1}path.off{opacity:.08}
#tip{position:fixed;display:none;max-width:46em;background:#222;color:#fff;padding:8px 10px;border-radius:4px;font-size:12px;white-space:pre-wrap;z-index:3;pointer-events:none}
table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:3px 10px;border-bottom:1px solid #eee;vertical-align:top}th{background:#f5f5f5}
details{padding:8px 16px}
</style></head><body>
<header><h1 id="title"></h1><div class="legend" id="legend"></div><div id="warnings"></div>
<p><input type="text" id="text" placeholder="filter: part of a name, operator or reason"> <span id="providers"></span>
<label><input type="checkbox" id="reasons"> only nodes that a provider declined</label><span id="count"></span></p></header>
<div id="canvas"></div><details open><summary>Nodes</summary><table><thead><tr><th>node<th>operator<th>provider<th>FLOPs<th>note and reasons</tr></thead><tbody id="rows"></tbody></table></details>
<details><summary>Copies, inserted nodes, creation</summary><pre id="more"></pre></details><div id="tip"></div>
<script>const report=)html";

constexpr const char* kTail = R"html(;
"use strict";
const $=id=>document.getElementById(id),svgNS="http://www.w3.org/2000/svg";
const palette=["#8ecae6","#ffb703","#a7c957","#e5989b","#b8a1d9","#f4a261","#90be6d","#cdb4db"];
const names=[...new Set(report.providers.map(p=>p.name))];
const colour=n=>n.vanished?"#eeeeee":n.provider?palette[names.indexOf(n.provider)%palette.length]:"#ff6b6b";
const el=(tag,attrs,text)=>{const e=document.createElementNS(svgNS,tag);for(const k in attrs)e.setAttribute(k,attrs[k]);if(text!==undefined)e.textContent=text;return e};
const op=n=>(n.domain?n.domain+":":"")+n.op_type;
const note=n=>[n.vanished,n.runs_as&&"runs as "+n.runs_as,n.fused_by.length&&"by "+n.fused_by.join(", ")].filter(Boolean).join("; ");
const reasons=n=>n.declined.map(d=>"not "+d.provider+": "+d.reason+": "+d.text);
const tipText=n=>[n.name+"  ("+op(n)+")",n.provider||"nobody",note(n),...reasons(n),"reads "+n.inputs.join(", "),"writes "+n.outputs.join(", ")].filter(Boolean).join("\n");
$("title").textContent="Placement of "+report.model;
const pct=x=>(100*x).toFixed(1)+"%";
for(const p of report.providers){const s=document.createElement("span"),i=document.createElement("i");i.style.background=palette[names.indexOf(p.name)%palette.length];s.append(i,`${p.name}: ${p.nodes} nodes (${pct(p.node_share)}), ${pct(p.flop_share)} of FLOPs`);$("legend").append(s)}
if(report.flops_assumption){const s=document.createElement("span");s.textContent=report.flops_assumption;$("legend").append(s)}
for(const p of report.inactive){const d=document.createElement("div");d.className="warn";d.textContent=`${p.provider} is not active: ${p.cause}.`+(p.fix?` To fix it: ${p.fix}.`:"");$("warnings").append(d)}
for(const n of names){const l=document.createElement("label"),c=document.createElement("input");c.type="checkbox";c.checked=true;c.value=n;l.append(c," "+n);$("providers").append(l)}
const producer=new Map();report.nodes.forEach((n,i)=>n.outputs.forEach(o=>producer.set(n.graph+"\u0000"+o,i)));
const depth=new Array(report.nodes.length).fill(-1);
const sources=report.nodes.map(n=>[...new Set(n.inputs.map(v=>producer.get(n.graph+"\u0000"+v)).filter(i=>i!==undefined))]);
for(let i=0;i<depth.length;i++){const stack=[i];while(stack.length){const j=stack[stack.length-1];if(depth[j]>=0){stack.pop();continue}const open=sources[j].filter(k=>depth[k]<0&&!stack.includes(k));if(open.length&&stack.length<20000)stack.push(open[0]);else{depth[j]=Math.max(-1,...sources[j].map(k=>depth[k]))+1;stack.pop()}}}
const W=168,H=34,GX=22,GY=26,column=[];const at=report.nodes.map((n,i)=>{const d=depth[i];column[d]=(column[d]||0)+1;return{x:12+(column[d]-1)*(W+GX),y:12+d*(H+GY)}});
const svg=el("svg",{width:24+Math.max(1,...column.map(c=>c||0))*(W+GX),height:24+column.length*(H+GY)});
const edges=[];report.nodes.forEach((n,i)=>sources[i].forEach(j=>{const a=at[j],b=at[i],x1=a.x+W/2,y1=a.y+H,x2=b.x+W/2,y2=b.y;const p=el("path",{class:"edge",d:`M${x1},${y1}C${x1},${y1+GY/2} ${x2},${y2-GY/2} ${x2},${y2}`});svg.append(p);edges.push([p,i,j])}));
const short=(t,k)=>t.length>k?t.slice(0,k-1)+"…":t;
const boxes=report.nodes.map((n,i)=>{const g=el("g",{class:"node",transform:`translate(${at[i].x},${at[i].y})`,"data-name":n.name,"data-provider":n.provider,"data-reason":reasons(n).join("\n")});g.append(el("title",{},tipText(n)),el("rect",{width:W,height:H,fill:colour(n)}),el("text",{x:7,y:14,"font-weight":"bold"},short(op(n),24)),el("text",{x:7,y:27},short(n.name,26)));
g.addEventListener("mousemove",e=>{$("tip").style.display="block";$("tip").textContent=tipText(n);$("tip").style.left=Math.min(e.clientX+14,innerWidth-420)+"px";$("tip").style.top=e.clientY+14+"px"});g.addEventListener("mouseleave",()=>$("tip").style.display="none");svg.append(g);return g});
$("canvas").append(svg);
const rows=report.nodes.map((n,i)=>{const r=document.createElement("tr");for(const t of[n.name,op(n),n.provider||"-",n.flops?n.flops.toPrecision(3):"",[note(n),...reasons(n)].filter(Boolean).join("; ")]){const d=document.createElement("td");d.textContent=t;r.append(d)}r.children[2].style.background=colour(n);r.addEventListener("click",()=>{boxes.forEach(b=>b.classList.remove("sel"));boxes[i].classList.add("sel");boxes[i].scrollIntoView({block:"center",inline:"center"})});$("rows").append(r);return r});
$("more").textContent=JSON.stringify({copies:report.copies,inserted:report.inserted,phases:report.phases,passes:report.passes.filter(p=>p.rewrites)},null,1);
function filter(){const text=$("text").value.toLowerCase(),on=[...$("providers").querySelectorAll("input")].filter(c=>c.checked).map(c=>c.value),declined=$("reasons").checked;let shown=0;const visible=report.nodes.map(n=>(!text||tipText(n).toLowerCase().includes(text))&&(!n.provider||on.includes(n.provider))&&(!declined||n.declined.length>0));
visible.forEach((v,i)=>{boxes[i].classList.toggle("off",!v);rows[i].hidden=!v;shown+=v});edges.forEach(([p,i,j])=>p.classList.toggle("off",!visible[i]||!visible[j]));$("count").textContent=`${shown} of ${report.nodes.length} nodes`}
function fromHash(){const q=new URLSearchParams(location.hash.slice(1));if(q.has("text"))$("text").value=q.get("text");if(q.has("provider"))$("providers").querySelectorAll("input").forEach(c=>c.checked=q.getAll("provider").includes(c.value));if(q.has("reasons"))$("reasons").checked=q.get("reasons")==="1";filter()}
for(const e of["text","reasons"])$(e).addEventListener("input",filter);$("providers").addEventListener("input",filter);addEventListener("hashchange",fromHash);fromHash();
</script></body></html>
)html";

}  // namespace

std::string to_html(const PlacementReport& report) {
  std::string json = to_json(report);
  // Names are the model's: "</script>" in one must not end the script.
  std::string safe;
  for (char c : json) safe += c == '<' ? "\\u003c" : std::string(1, c);
  return kHead + safe + kTail;
}

}  // namespace epona
