// What the primitives of an ECP5 do, as far as the board's top uses them (FPGA-TN-02035,
// FPGA-TN-02200, FPGA-TN-02032). Delays are none: the bench gives data as the delays would.

module IB(input I, output O);
  assign O = I;
endmodule

module OB(input I, output O);
  assign O = I;
endmodule

module OBZ(input I, input T, output O);
  assign O = T ? 1'b0 : I;
endmodule

module BB(input I, input T, output O, inout B);
  assign B = T ? 1'bz : I;
  assign O = B;
endmodule

// Both edges' bits come out together, with the rising edge after them.
module IDDRX1F(input SCLK, input RST, input D, output reg Q0, output reg Q1);
  reg rising, falling;
  always @(posedge SCLK) begin
    rising <= D;
    Q0 <= rising;
    Q1 <= falling;
  end
  always @(negedge SCLK) falling <= D;
endmodule

module ODDRX1F(input SCLK, input RST, input D0, input D1, output Q);
  reg first, second, late;
  always @(posedge SCLK) begin
    first <= D0;
    second <= D1;
  end
  always @(negedge SCLK) late <= second;
  assign Q = SCLK ? first : late;
endmodule

module DELAYG #(parameter DEL_MODE = "", parameter DEL_VALUE = 0) (input A, output Z);
  assign Z = A;
endmodule

module FD1S3BX(input D, input CK, input PD, output reg Q);
  always @(posedge CK or posedge PD)
    if (PD) Q <= 1'b1;
    else Q <= D;
endmodule

// The bench makes the output; the dividers must make it of the input, with a VCO that runs.
module EHXPLLL #(
    parameter CLKI_DIV = 1, parameter CLKFB_DIV = 1, parameter CLKOP_DIV = 1,
    parameter CLKOP_ENABLE = "", parameter CLKOP_CPHASE = 0, parameter CLKOP_FPHASE = 0,
    parameter CLKOS_ENABLE = "", parameter CLKOS2_ENABLE = "", parameter CLKOS3_ENABLE = "",
    parameter FEEDBK_PATH = "", parameter PLLRST_ENA = "", parameter INTFB_WAKE = "",
    parameter STDBY_ENABLE = "", parameter DPHASE_SOURCE = "", parameter OUTDIVIDER_MUXA = "")
  (input RST, input STDBY, input PHASESEL0, input PHASESEL1, input PHASEDIR, input PHASESTEP,
   input PHASELOADREG, input PLLWAKESYNC, input ENCLKOP, input CLKI, input CLKFB,
   output CLKOP, output LOCK);
  initial begin
    if (100 * CLKFB_DIV != 125 * CLKI_DIV) $fatal(1, "the PLL does not make 125 MHz of 100 MHz");
    if (125 * CLKOP_DIV < 400 || 125 * CLKOP_DIV > 800) $fatal(1, "the PLL's VCO does not run");
  end
  assign CLKOP = probe.core_clk;
  assign LOCK = probe.pll_locked;
endmodule

// A PHY that delays TXC: `late` is the bench's clock, and TXC must have gone before its edges.
module phy_delay(input late, input started, input txc, output reg bad);
  initial bad = 0;
  always @(posedge late) if (started && !txc) bad <= 1;
  always @(negedge late) if (started && txc) bad <= 1;
endmodule

// The board: what is wired to the FPGA's pads, with pull-ups on the management buses.
module probe(
    input clk100, input core_clk, input late_clk, input pll_locked, input reset_button_n,
    input rx_clk_0, input rx_ctl_0, input [3:0] rx_data_0,
    input rx_clk_1, input rx_ctl_1, input [3:0] rx_data_1,
    output txc_bad_0, output tx_ctl_0, output [3:0] tx_data_0,
    output txc_bad_1, output tx_ctl_1, output [3:0] tx_data_1,
    output phy_reset_n_0, output mdc_0, input mdio_pull_0, output mdio_line_0,
    output phy_reset_n_1, output mdc_1, input mdio_pull_1, output mdio_line_1,
    input uart_rx, output uart_tx, output [7:0] leds_n);
  wire tx_clk_0, tx_clk_1;
  phy_delay delay_0(late_clk, pll_locked, tx_clk_0, txc_bad_0);
  phy_delay delay_1(late_clk, pll_locked, tx_clk_1, txc_bad_1);
  wire mdio_0, mdio_1;
  pullup (mdio_0);
  pullup (mdio_1);
  assign mdio_0 = mdio_pull_0 ? 1'b0 : 1'bz;
  assign mdio_1 = mdio_pull_1 ? 1'b0 : 1'bz;
  assign mdio_line_0 = mdio_0;
  assign mdio_line_1 = mdio_1;
  board fpga(
    .clk100_0__p(clk100), .rst_0__io(reset_button_n),
    .eth_rgmii_0__rx_clk__io(rx_clk_0), .eth_rgmii_0__rx_ctl__io(rx_ctl_0),
    .eth_rgmii_0__rx_data__io(rx_data_0),
    .eth_rgmii_0__tx_clk__io(tx_clk_0), .eth_rgmii_0__tx_ctl__io(tx_ctl_0),
    .eth_rgmii_0__tx_data__io(tx_data_0),
    .eth_rgmii_0__rst__io(phy_reset_n_0), .eth_rgmii_0__mdc__io(mdc_0),
    .eth_rgmii_0__mdio__io(mdio_0),
    .eth_rgmii_1__rx_clk__io(rx_clk_1), .eth_rgmii_1__rx_ctrl__io(rx_ctl_1),
    .eth_rgmii_1__rx_data__io(rx_data_1),
    .eth_rgmii_1__tx_clk__io(tx_clk_1), .eth_rgmii_1__tx_ctrl__io(tx_ctl_1),
    .eth_rgmii_1__tx_data__io(tx_data_1),
    .eth_rgmii_1__rst__io(phy_reset_n_1), .eth_rgmii_1__mdc__io(mdc_1),
    .eth_rgmii_1__mdio__io(mdio_1),
    .uart_0__rx__io(uart_rx), .uart_0__tx__io(uart_tx),
    .led_0__io(leds_n[0]), .led_1__io(leds_n[1]), .led_2__io(leds_n[2]), .led_3__io(leds_n[3]),
    .led_4__io(leds_n[4]), .led_5__io(leds_n[5]), .led_6__io(leds_n[6]), .led_7__io(leds_n[7]));
endmodule
